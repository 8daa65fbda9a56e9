from __future__ import annotations

from itertools import combinations
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.text import Text

from contracts.summaries.prerank import FrontierPoint, PreRankChoice, PreRankerFigures
from models.preranking import plot as prerank_plot

POINT = FrontierPoint(cost=3.0, price=3.0, kept=("a", "b", "c"), fields_kept=3, recall=0.99, recall_error=0.01, auc=0.7,
                      delta={}, chosen=False, us_per_1000=900.0)
FIGURES = PreRankerFigures(recall=0.7, recall_error=0.01, recall_without_bids=0.7, auc=0.7, us_per_1000=100.0)


def choice_of(*points: FrontierPoint) -> PreRankChoice:
    return PreRankChoice(
        kind="fscd", item_side="precomputed", seed=1, fields_kept=3, fields_all=3, kept=("a", "b", "c"), cost=3.0,
        price=3.0, costs={}, frontier=points, dropped=(), words=(), fscd=FIGURES, dot_product=FIGURES,
        full_ranker=FIGURES)


def test_the_frontier_is_drawn(tmp_path: Path) -> None:
    cheaper = POINT.model_copy(update={"us_per_1000": 300.0, "recall": 0.9, "chosen": True})
    prerank_plot.write(tmp_path / "frontier.png", choice_of(POINT, cheaper))
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")


def test_no_name_lies_over_another() -> None:
    """Fifteen, 38 chosen and 48 fields, the last two at nearly the same time and recall."""
    names = ("us_per_1000", "recall", "fields_kept", "chosen")
    points = tuple(POINT.model_copy(update=dict(zip(names, values, strict=True))) for values in (
        (800.0, 0.877, 15, False), (1580.0, 0.996, 38, True), (1760.0, 0.991, 48, False)))
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    prerank_plot.draw(axes, choice_of(*points))
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the lines that lead there
    assert [text.get_text() for text in axes.texts] == ["15 fields", "chosen: 38 fields", "48 fields"]
    curve = axes.lines[0].get_transform().transform(axes.lines[0].get_xydata())
    assert not any(box.contains(*point) for box in boxes for point in curve)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
