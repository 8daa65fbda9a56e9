"""The summary of the pre-ranker's choice is read back as it was; a dropped field says why it went."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.summaries import summary
from contracts.summaries.prerank import DroppedField, FrontierPoint, PreRankerFigures, PrerankSummary

POINT = FrontierPoint(cost=3.0, price=3.0, kept=("a", "b"), fields_kept=2, recall=0.9, recall_error=0.01, auc=0.7,
                      delta={"a": 0.9, "b": 0.8}, chosen=True)
FIGURES = PreRankerFigures(recall=0.9, recall_error=0.01, recall_without_bids=0.8, auc=0.7)
GIVEN = PrerankSummary(
    kind="fscd", item_side="precomputed", seed=1, fields_kept=2, fields_all=3, kept=("a", "b"), cost=3.0, price=3.0,
    costs={"a": 1.0, "b": 2.0, "c": 3.0}, frontier=(POINT,), words=("c went",),
    dropped=(DroppedField(field="c", recall=0.0, error=0.01, share=0.5, unit="cost"),),
    fscd=FIGURES.model_copy(update={"us_per_1000": 900.0, "funnel_ms": 8.0}), dot_product=FIGURES, full_ranker=FIGURES,
    digest="d", seconds=1.0,
)


def test_a_summary_is_read_back(tmp_path: Path) -> None:
    summary.write(tmp_path, GIVEN)
    assert summary.read(tmp_path, PrerankSummary) == GIVEN


@pytest.mark.parametrize(
    ("recall", "sentence"),
    [(-0.01, "c: -0.0100 recall, -50.0% cost; no loss beyond chance"),
     (-0.03, "c: -0.0300 recall, -50.0% cost; what it adds is not worth its cost")],
)
def test_a_loss_counts_beyond_two_standard_errors(recall: float, sentence: str) -> None:
    assert DroppedField(field="c", recall=recall, error=0.01, share=0.5, unit="cost").sentence == sentence
