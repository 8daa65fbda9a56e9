from __future__ import annotations

from pathlib import Path

from contracts.summaries.prerank import FrontierPoint, PreRankChoice, PreRankerFigures
from models.preranking import plot as prerank_plot

POINT = FrontierPoint(cost=3.0, price=3.0, kept=("a", "b", "c"), fields_kept=3, recall=0.99, recall_error=0.01, auc=0.7,
                      delta={}, chosen=False, us_per_1000=900.0)
FIGURES = PreRankerFigures(recall=0.7, recall_error=0.01, recall_without_bids=0.7, auc=0.7, us_per_1000=100.0)


def test_the_frontier_is_drawn(tmp_path: Path) -> None:
    cheaper = POINT.model_copy(update={"us_per_1000": 300.0, "recall": 0.9, "chosen": True})
    prerank_plot.write(tmp_path / "frontier.png", PreRankChoice(
        kind="fscd", item_side="precomputed", seed=1, fields_kept=3, fields_all=3, kept=("a", "b", "c"), cost=3.0,
        price=3.0, costs={}, frontier=(POINT, cheaper), dropped=(), words=(), fscd=FIGURES, dot_product=FIGURES,
        full_ranker=FIGURES,
    ))
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
