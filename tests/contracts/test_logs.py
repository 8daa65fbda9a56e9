from __future__ import annotations

import json
import logging

import pytest

from contracts import logs
from contracts.errors import ConfigError
from contracts.logs import JsonLines, fields, trace_id

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def line(message: str, **more: object) -> dict[str, object]:
    record = logging.makeLogRecord({"msg": message, "levelname": "ERROR", "name": "sluice.serving", **more})
    [made] = JsonLines().format(record).splitlines()
    found: dict[str, object] = json.loads(made)
    return found


def test_a_record_is_one_line_with_what_it_is_about() -> None:
    made = line('of "two"\nlines', created=1_772_352_000.25, process=7, **fields(request_id="r1", trace_id="", tried=2))
    assert made == {"time": "2026-03-01T08:00:00.250Z", "level": "ERROR", "logger": "sluice.serving", "process": 7,
                    "message": 'of "two"\nlines', "request_id": "r1", "tried": 2}


def test_an_error_has_its_traceback_in_the_same_line() -> None:
    try:
        raise ValueError("cause")
    except ValueError as error:
        made = line("failed", exc_info=(ValueError, error, error.__traceback__))
    assert "ValueError: cause" in str(made["error"])


def test_the_trace_of_the_environment_is_that_of_lines_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    assert line("x")["trace_id"] == TRACE
    assert line("x", **fields(trace_id="other"))["trace_id"] == "other"


@pytest.mark.parametrize(("given", "expected"), [
    (PARENT, TRACE), ("", ""), ("00-short-00f067aa0ba902b7-01", ""), (PARENT.upper(), ""), (PARENT + "-more", TRACE)])
def test_the_trace_of_a_traceparent(given: str, expected: str) -> None:
    assert trace_id(given) == expected


def test_the_format_is_text_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_LOG_FORMAT", raising=False)
    assert not logs.are_json()
    monkeypatch.setenv("SLUICE_LOG_FORMAT", "json")
    assert logs.are_json()
    monkeypatch.setenv("SLUICE_LOG_FORMAT", "xml")
    with pytest.raises(ConfigError, match="text or json"):
        logs.are_json()
