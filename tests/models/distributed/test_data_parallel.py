from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from contracts.errors import ConfigError
from models.distributed.data_parallel import join, resolve_device
from models.distributed.world import World


def test_auto_takes_what_there_is() -> None:
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="use 'auto'"):
        resolve_device(name)


def test_one_process_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join(torch.device("cpu")) == World(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_exchanges_do_not_preempt_and_who_has_left_keeps_none_of_their_threads(of_two: Path, rank: int) -> None:
    """One that ran while the interpreter ends would abort the process."""
    said = json.loads((of_two / f"threads{rank}of2.json").read_text(encoding="utf-8"))
    assert set(said["joined"]) == {os.SCHED_BATCH}
    assert said["left"] == []
