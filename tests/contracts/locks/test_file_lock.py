"""One process at a time; what it says of itself is read by those that are refused."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.locks.file_lock import Held, let_go, take

DIES = """
import os, signal, sys
from pathlib import Path
from contracts.locks.file_lock import take
take(Path(sys.argv[1]), "the dead one")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_second_is_refused_with_what_the_first_has_said(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = take(path, "the first")
    with pytest.raises(Held) as refused:
        take(path, "the second")
    assert refused.value.told == "the first"
    let_go(path, lock)
    assert not path.exists()
    let_go(path, take(path, "the second"))


def test_one_that_is_killed_leaves_the_file_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert subprocess.run([sys.executable, "-c", DIES, str(path)]).returncode == -signal.SIGKILL
    assert path.read_text() == "the dead one"
    lock = take(path, "next")
    assert path.read_text() == "next"
    let_go(path, lock)


def test_a_fork_of_the_holder_lets_nothing_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = take(path, "the first")
    child = os.fork()
    if child == 0:
        let_go(path, lock)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(Held):
        take(path, "the second")
    let_go(path, lock)


def test_where_no_file_can_be_made_the_system_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        take(tmp_path / "missing" / "lock", "nobody")


def test_what_cannot_be_said_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full: who tries again in this process is not refused by itself."""
    path = tmp_path / "lock"

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            take(path, "the first")
    assert not path.exists()
    let_go(path, take(path, "the first"))
