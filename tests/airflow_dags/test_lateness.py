"""A missed deadline is written down, and told to whoever takes messages."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from airflow_dags import lateness
from airflow_dags.lateness import report_late

GOT: list[dict[str, str]] = []


class Inbox(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        GOT.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_without_an_address_it_is_a_line(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("SLUICE_ALERTS", "")
    report_late("daily_ranking", 6.0, context={})
    assert "daily_ranking takes 6 hours longer" in caplog.text


def test_with_an_address_a_message_is_posted(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), Inbox) as server:
        threading.Thread(target=server.handle_request).start()
        monkeypatch.setenv("SLUICE_ALERTS", f"http://127.0.0.1:{server.server_port}/")
        report_late("retention", 3.0, context={})
    assert "retention takes 3 hours longer" in GOT[0]["text"]


def test_deadlines_are_left_out_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lateness.due_within("daily", timedelta(hours=2)) is not None
    monkeypatch.setenv("SLUICE_DEADLINES", "no")
    assert lateness.due_within("daily", timedelta(hours=2)) is None
