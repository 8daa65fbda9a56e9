"""Two processes and one folder: the second is refused, a killed one leaves nothing, children and forks hold nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from contracts.errors import ConfigError, SluiceError
from sluice.out_folder.one_writer import FILE, HELD, one_writer

HOLD = """
import subprocess, sys, time
from pathlib import Path
from sluice.out_folder.one_writer import one_writer
with one_writer(Path(sys.argv[1]), "run"):
    {inside}
    print("held", flush=True)
    time.sleep(60)
"""
FORK = """import os
    one, other = os.pipe()
    if not os.fork():
        os.write(other, b"!")  # what it does first, to hold nothing, is done
        time.sleep(60)
    os.read(one, 1)"""


@contextmanager
def holder(folder: Path, inside: str = "") -> Iterator[subprocess.Popen[str]]:
    code = HOLD.format(inside=inside)
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_the_second_is_refused_at_once_and_told_who_since_when_and_what_to_do(tmp_path: Path) -> None:
    began = time.monotonic()
    out = tmp_path / "out"
    with holder(out) as first, pytest.raises(SluiceError) as refused, one_writer(out, "train"):
        pass
    assert time.monotonic() - began < 30
    told = str(refused.value)
    assert told.startswith(f"`sluice run` (process {first.pid}) has been writing to {out} since 2")
    assert "UTC" in told
    assert told.endswith("wait until it has ended, or give another folder with --out")


@pytest.mark.parametrize("inside", ["", FORK])
def test_a_killed_process_leaves_no_lock_even_where_one_that_it_forked_lives_on(tmp_path: Path, inside: str) -> None:
    with holder(tmp_path, inside) as first:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        with one_writer(tmp_path, "run"):
            assert (tmp_path / FILE).exists()


def test_another_folder_is_free(tmp_path: Path) -> None:
    with holder(tmp_path / "a"), one_writer(tmp_path / "b", "run"):
        pass


def test_what_the_holder_starts_is_not_locked_out(tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from sluice.out_folder.one_writer import one_writer\n"
            "with one_writer(Path(sys.argv[1]), 'train'): pass")
    with one_writer(tmp_path, "run"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        assert (tmp_path / FILE).exists()
        with one_writer(tmp_path, "bundle"):
            pass
        assert (tmp_path / FILE).exists()
    assert HELD not in os.environ


@pytest.mark.parametrize(
    ("out", "why"), [("afile", "/afile is a file"), ("afile/x/y", "/afile is a file"), ("/proc/x", "no such file")])
def test_a_place_that_cannot_be_a_folder_is_refused_with_the_cure(tmp_path: Path, out: str, why: str) -> None:
    (tmp_path / "afile").touch()
    told = rf"output folder {tmp_path / out}: .*{why}.*; give another folder with --out"
    with pytest.raises(ConfigError, match=told), one_writer(tmp_path / out, "run"):
        pass


def test_nothing_is_left_afterwards_not_even_a_folder_in_which_nothing_was_written(tmp_path: Path) -> None:
    with one_writer(tmp_path / "empty", "run"):
        pass
    with one_writer(tmp_path / "used", "run"):
        (tmp_path / "used" / "x").touch()
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} == {"used", "used/x"}
