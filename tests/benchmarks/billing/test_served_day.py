"""What the comparison says of a stretch that was read back whole, and of one that was not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.billing.served_day import Told, Visitors, compared, main, write_config
from contracts.artifacts import ITEM, LABEL, REQUEST, Artifacts
from contracts.config.config import load
from tests.benchmarks.printed_figures import refuses

ZERO = ("impressions", "extra", "calls", "clicks", "money")


def test_options() -> None:
    assert refuses(main, "some/bundle")


def test_the_configuration_reads_the_log_of_answers(tmp_path: Path) -> None:
    found = load(write_config(tmp_path, 7))
    assert (found.log.path, found.label_window, found.simulation) == ("{data}/answers", 7, None)
    assert found.log.request_id == "request_id"


def visitors(folder: Path) -> Visitors:
    """Two answers of two items; i1 of the first was clicked, and both of the second."""
    made = object.__new__(Visitors)
    made.told = [Told("r1", "i1", 0.5), Told("r1", "i2", 9.0), Told("r2", "i1", 0.25), Told("r2", "i2", 0.125)]
    made.outcomes = [SimpleNamespace(code="OK"), SimpleNamespace(code="OK")]  # type: ignore[list-item]
    made.clicks = folder / "clicks"
    write(made.clicks, {"request_id": ["r1", "r2", "r2"], "item_id": ["i1", "i1", "i2"]})
    write(folder / "items", {"item_id": ["i1", "i2"], "advertiser_id": ["x", "y"]})
    return made


def write(folder: Path, columns: dict[str, list[Any]]) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "part.parquet")


def said(answers: int, amounts: tuple[float, float], clicks: int) -> dict[str, Any]:
    figure = {"name": "error_rate", "value": 0.0, "sentence": f"error rate: 0.0000 of {answers} answers (95% ...)"}
    lines = [{"payer": payer, "amount": amount} for payer, amount in zip("xy", amounts, strict=True)]
    return {"watch": {"figures": [figure]}, "bill": {"lines": lines, "amount": sum(amounts), "clicks": clicks,
                                                     "lost_calls": 0}}


@pytest.mark.parametrize(("labels", "found", "differences"), [
    ([1, 0, 1, 1], said(2, (0.75, 0.125), 3), (0, 0, 0, 0, 0.0)),
    ([1, 0, 0, 1], said(1, (0.5, 0.125), 2), (1, 1, 1, 1, 0.25)),
    ([1, 0, 1], said(2, (0.75, 0.135), 3), (1, 0, 0, 0, pytest.approx(0.01))),
])
def test_what_differs_is_counted(
    tmp_path: Path, labels: list[int], found: dict[str, Any], differences: tuple[float, ...]
) -> None:
    callers = visitors(tmp_path)
    write(Artifacts(tmp_path / "out").events / "day=2026-11-22", {
        REQUEST: ["r1", "r1", "r2", "r2"][: len(labels)], ITEM: ["i1", "i2", "i1", "i2"][: len(labels)],
        LABEL: [float(one) for one in labels]})
    result = compared(tmp_path, callers, found)
    assert tuple(result[name] for name in ZERO) == differences
    assert (result["answered"], result["shown"], result["clicked"]) == (2, 4, 3)
