"""What a command prints is shown, kept for a while, and never an error of the page."""

from __future__ import annotations

import sys
from pathlib import Path

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
