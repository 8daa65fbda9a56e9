from __future__ import annotations

import logging

import pytest

from serving.batches.trouble import Trouble


def test_its_begin_and_its_end_are_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble("it fails (%s)", "it is over")
    with caplog.at_level(logging.INFO, "sluice.serving"):
        for failure in ("", "full", "full", "broken", "", "", "full"):
            trouble.say(failure)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("ERROR", "it fails (full)"), ("INFO", "it is over"), ("ERROR", "it fails (full)")]
