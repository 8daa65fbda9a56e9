from __future__ import annotations

from pathlib import Path

import pytest

from contracts.summaries import summary
from contracts.summaries.quality import Finding, QualitySummary


@pytest.mark.parametrize(("low", "high", "refused"), [
    (None, None, False), (None, 3.0, False), (None, 1.9, True), (1.0, 3.0, False), (2.1, 3.0, True), (2.0, 2.0, False),
])
def test_a_figure_is_refused_beyond_a_limit_and_on_none(low: float | None, high: float | None, refused: bool) -> None:
    assert Finding(figure="rows", value=2.0, low=low, high=high).refused is refused


def test_a_figure_names_its_column() -> None:
    assert Finding(figure="psi.price.net", value=0.1).column == "price.net"
    assert Finding(figure="rows", value=10.0).column == ""


def test_a_summary_is_read_back(tmp_path: Path) -> None:
    findings = (Finding(figure="rows", value=10.0, low=5.0, high=20.0), Finding(figure="psi.city", value=0.1))
    given = QualitySummary(
        day="2026-01-05", history=("2026-01-04",), judged=1, refused=(), columns=(), figures=findings)
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, QualitySummary) == given
