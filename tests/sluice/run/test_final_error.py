from __future__ import annotations

from pathlib import Path

import pytest

from sluice.run import final_error


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As the command that starts the processes makes it."""
    final_error.make(tmp_path / "error")
    monkeypatch.setenv(final_error.VARIABLE, str(tmp_path / "error"))
    return tmp_path / "error"


def test_the_first_error_is_noted_and_spoken_of(file: Path) -> None:
    assert final_error.noted(file) is None
    assert final_error.note(KeyError("column"), 2)
    assert not final_error.note(OSError("no space"), 1)
    assert final_error.noted(file) == 2


def test_a_lost_peer_is_not_final_and_silent_once_its_reason_is_known(file: Path) -> None:
    assert final_error.note(RuntimeError("Connection closed by peer"), 1)
    assert final_error.noted(file) is None
    assert final_error.note(ValueError("bad"), 1)
    assert not final_error.note(RuntimeError("Connection closed by peer"), 1)


def test_a_process_alone_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(final_error.VARIABLE, raising=False)
    assert final_error.note(KeyError("column"), 2)
