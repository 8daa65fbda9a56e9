from __future__ import annotations

import logging

import pytest

from contracts.errors import ConfigError
from serving.metrics.call_log import MOST, CallLog, call_log_of_process


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [getattr(record, "fields", {}) for record in caplog.records]


def test_what_failed_is_a_line_and_the_rest_where_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sluice.calls")
    for everything in (False, True):
        calls = CallLog(everything)
        calls.ended("Rank", "OK", 0.01, "r1", "t1")
        calls.ended("Rank", "INTERNAL", 0.0123456789, "r2", "")
    assert [line["request_id"] for line in told(caplog)] == ["r2", "r1", "r2"]
    assert told(caplog)[0] == {"method": "Rank", "status": "INTERNAL", "seconds": 0.012346, "request_id": "r2"}
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]


def test_a_flood_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [7.0]
    calls = CallLog(False, clock=lambda: now[0])
    for _ in range(MOST + 5):
        calls.ended("Rank", "RESOURCE_EXHAUSTED", 0.0, "", "")
    assert len(caplog.records) == MOST
    now[0] += 1
    calls.ended("Rank", "RESOURCE_EXHAUSTED", 0.0, "", "")
    assert told(caplog)[-1]["left_out"] == 5
    assert "left_out" not in told(caplog)[0]


@pytest.mark.parametrize(("kind", "which", "on"), [
    ("text", "", False), ("json", "", True), ("text", "all", True), ("json", "none", False)])
def test_the_environment_says_which(monkeypatch: pytest.MonkeyPatch, kind: str, which: str, on: bool) -> None:
    monkeypatch.setenv("SLUICE_LOG_FORMAT", kind)
    monkeypatch.setenv("SLUICE_LOG_CALLS", which)
    assert (call_log_of_process() is not None) == on


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_LOG_CALLS", "most")
    with pytest.raises(ConfigError, match="failed, all, none"):
        call_log_of_process()
