from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from serving.workers.worker_messages import WorkerOrder, WorkerReport, WorkerSettings

SETTINGS = WorkerSettings(folder=Path("/b"), host="::1", port=7, connection_seconds=0.5, answers=Path("/a"))


@pytest.mark.parametrize("settings", [SETTINGS, SETTINGS.model_copy(update={"answers": None})])
def test_settings_come_over_as_they_are(settings: WorkerSettings) -> None:
    assert WorkerSettings.model_validate_json(settings.model_dump_json()) == settings


@pytest.mark.parametrize("report", [
    WorkerReport(ready="shop-1"), WorkerReport(pong=3, connections=7), WorkerReport(refused='it said "no"\nand more')])
def test_a_report_is_one_line(report: WorkerReport) -> None:
    assert "\n" not in report.line
    assert WorkerReport.model_validate_json(report.line) == report


@pytest.mark.parametrize("order", [
    WorkerOrder(listen=True), WorkerOrder(select=(0, 2, 3), first=(2, 2)), WorkerOrder(ping=4)])
def test_an_order_is_one_line(order: WorkerOrder) -> None:
    assert "\n" not in order.line
    assert WorkerOrder.model_validate_json(order.line) == order


def test_a_line_of_something_else_is_refused() -> None:
    with pytest.raises(ValidationError):
        WorkerReport.model_validate_json('{"reday": "shop-1"}')
