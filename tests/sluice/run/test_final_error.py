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


def raised(file: str, text: str) -> RuntimeError:
    """As code of that file raises it."""
    try:
        exec(compile(f"raise RuntimeError({text!r})", file, "exec"))
    except RuntimeError as error:
        return error
    raise AssertionError


def test_the_same_error_in_two_starts_is_final(file: Path) -> None:
    assert final_error.note(raised("/networks/own.py", "shapes differ"), 1)
    assert final_error.note(raised("/networks/own.py", "shapes differ"), 1), "of the other process, in the same start"
    assert final_error.noted(file) is None
    final_error.make(file)
    assert final_error.note(raised("/networks/own.py", "shapes differ"), 1)
    assert final_error.noted(file) == 1


@pytest.mark.parametrize("then", [("/networks/own.py", "out of memory"), ("/networks/other.py", "shapes differ")])
def test_another_error_in_the_next_start_is_tried_again(file: Path, then: tuple[str, str]) -> None:
    final_error.note(raised("/networks/own.py", "shapes differ"), 1)
    final_error.make(file)
    final_error.note(raised(*then), 1)
    assert final_error.noted(file) is None
    final_error.make(file)
    final_error.note(raised("/networks/own.py", "shapes differ"), 1)
    assert final_error.noted(file) is None, "only the start before counts"


def test_a_peer_lost_in_two_starts_is_not_final(file: Path) -> None:
    for _ in range(2):
        final_error.note(raised("/torch/distributed/distributed_c10d.py", "Connection closed by peer"), 1)
        final_error.make(file)
    final_error.note(raised("/torch/distributed/distributed_c10d.py", "Connection closed by peer"), 1)
    assert final_error.noted(file) is None


def test_a_process_alone_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(final_error.VARIABLE, raising=False)
    assert final_error.note(KeyError("column"), 2)
