"""A folder goes with its process; one that was killed leaves it to the next."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from contracts.locks.own_folder import own_folder

PREFIX = "sluice-own."
HOLDER = """
import sys
from pathlib import Path
from contracts.locks.own_folder import own_folder
with own_folder(sys.argv[1], Path(sys.argv[2])) as folder:
    (folder / "content").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_it_is_empty_private_and_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with own_folder(PREFIX) as folder:
        assert list(tmp_path.iterdir()) == [folder]
        assert folder.name.startswith(PREFIX)
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


def test_of_one_that_has_been_removed_meanwhile_nothing_is_said(tmp_path: Path) -> None:
    with own_folder(PREFIX, tmp_path) as folder:
        folder.rmdir()


def test_those_of_the_killed_are_removed_and_of_the_living_kept(tmp_path: Path) -> None:
    """Also those that are called otherwise."""
    others = [tmp_path / "another", tmp_path / PREFIX.removesuffix(".")]
    for place in others:
        place.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLDER, PREFIX, str(tmp_path)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with own_folder(PREFIX, tmp_path) as own, own_folder(PREFIX, tmp_path) as second:
            assert sorted(tmp_path.iterdir()) == sorted([*others, held, own, second])
        holder.kill()
        holder.wait()
        assert (held / "content").exists()
        with own_folder(PREFIX, tmp_path) as own:
            assert sorted(tmp_path.iterdir()) == sorted([*others, own])
