"""What a bundle's job writes is read back as it was, and nothing that was not measured is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.bundle import BundleSummary, IndexRecall, ParityFigures

SCORING = BundleSummary(
    version="shop-0123456789ab", files=9, ranker="dnn", bytes=1234, seconds=1.5,
    parity=ParityFigures(rows=64, mismatches=0, max_logit_difference=1e-6))
RANKING = SCORING.model_copy(update={
    "users": 60, "items": 80, "index": IndexRecall(k=20, queries=60, mean=1.0, worst=0.9)})


@pytest.mark.parametrize("given", [SCORING, RANKING])
def test_a_summary_is_read_back(tmp_path: Path, given: BundleSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, BundleSummary) == given


def test_a_bundle_without_items_has_no_figures_of_items() -> None:
    assert SCORING.plain().keys() == RANKING.plain().keys() - {"users", "items", "index"}


def test_another_jobs_summary_is_refused(tmp_path: Path) -> None:
    (tmp_path / summary.FILE).write_text('{"version": "shop-0123456789ab", "auc": 0.7}')
    with pytest.raises(DataError, match="no BundleSummary"):
        summary.read(tmp_path, BundleSummary)
