from __future__ import annotations

import pytest

from contracts.errors import ConfigError
from sluice.run.one_process import is_first, refuse_several


def test_alone_every_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    refuse_several("features")
    assert is_first()


def test_of_several_processes_those_that_do_not_train_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ConfigError, match="`sluice crosses` runs in one process and torchrun started 2"):
        refuse_several("crosses")
    assert not is_first()
