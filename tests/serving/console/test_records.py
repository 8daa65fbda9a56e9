"""What a command prints is shown, kept for a while, and never an error of the page."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serving.console.records import NONE, Records


def test_without_a_command_there_is_nothing() -> None:
    assert Records().read() == NONE


def test_it_is_read_once_however_many_ask(tmp_path: Path) -> None:
    count = tmp_path / "asked"
    script = f"open({str(count)!r}, 'a').write('x'); print('warm'); print('{{\"sections\": [1]}}')"
    records = Records((sys.executable, "-c", script))
    assert [records.read(), records.read()] == [{"sections": [1]}] * 2
    assert count.read_text() == "x"


def test_what_fails_says_why() -> None:
    assert Records((sys.executable, "-c", "raise SystemExit('no such folder')")).read() == {"error": "no such folder"}
    assert "error" in Records(("/no/such/program",)).read()  # type: ignore[operator]


def test_nobody_waits_while_they_are_made(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    records = Records((sys.executable, "-c", f"print(open({str(pipe)!r}).read())"))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(records.read)
        with pipe.open("w") as told:  # opens once the command reads
            assert threads.submit(records.read).result(30) == NONE
            told.write(json.dumps({"sections": [1]}))
        assert first.result(30) == {"sections": [1]}


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_ends_with_who_has_started_it(told: signal.Signals, tmp_path: Path) -> None:
    """However that ends: the command holds a pipe open as long as it lives."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = (sys.executable, "-c", f"import time; held = open({str(pipe)!r}, 'w'); held.write('x'); held.flush(); "
                                     "time.sleep(60)")
    reading = f"from serving.console.records import Records; Records({command!r}).read()"
    with subprocess.Popen((sys.executable, "-c", reading)) as reader, pipe.open("rb", buffering=0) as held:
        assert held.read(1) == b"x"
        reader.send_signal(told)
        assert reader.wait() == -told
        assert select.select([held], [], [], 30)[0], "the command lives on"
        assert held.read() == b""


def test_a_password_is_not_shown() -> None:
    script = "raise SystemExit('no answer of postgresql://user:secret@host/name')"
    assert Records((sys.executable, "-c", script)).read() == {"error": "no answer of postgresql://user:***@host/name"}
