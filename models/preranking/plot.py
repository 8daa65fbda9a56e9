"""The frontier as a picture: recall against microseconds, beside the dot product and the ranker."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.summaries.prerank import FrontierPoint, PreRankChoice, PreRankerFigures

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def available() -> bool:
    """Matplotlib is an optional part."""
    return importlib.util.find_spec("matplotlib") is not None


def write(path: Path, figures: PreRankChoice) -> None:
    """As PNG; `figures` with their times."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    draw(figure.add_subplot(), figures)
    figure.savefig(path, dpi=90)


def draw(axes: Axes, figures: PreRankChoice) -> None:
    """Recall of FSCD's points with 95% intervals over their time, and the three that are compared."""
    points = sorted(figures.frontier, key=_time)
    axes.errorbar([_time(p) for p in points], [p.recall for p in points],
                  yerr=[1.96 * p.recall_error for p in points], fmt="o-", capsize=3, label="FSCD, validation")
    for point in points:
        if point.chosen:
            _name(axes, point, f"chosen: {point.fields_kept} fields", (6, -30))
        elif point in (points[0], points[-1]):  # the others lie close
            _name(axes, point, f"{point.fields_kept} fields", (8, -3))
    compared = {"fscd": figures.fscd, "dot product": figures.dot_product, "full ranker": figures.full_ranker}
    for (name, pre_ranker), sign in zip(compared.items(), "*sD", strict=True):
        axes.plot(_time(pre_ranker), pre_ranker.recall, sign, markersize=9, label=f"{name}, test")
    axes.set_xscale("log")
    axes.set_xlabel("microseconds per 1,000 candidates")
    axes.set_ylabel("recall of the ranker's top in the kept set")
    axes.legend(frameon=False, loc="best")


def _name(axes: Axes, point: FrontierPoint, name: str, place: tuple[int, int]) -> None:
    """`place` from the point, in points: what is chosen is named below the curve, on which others lie close."""
    axes.annotate(name, (_time(point), point.recall), xytext=place, textcoords="offset points", fontsize=8,
                  arrowprops={"arrowstyle": "-", "linewidth": 0.6})


def _time(timed: FrontierPoint | PreRankerFigures) -> float:
    return float("nan") if timed.us_per_1000 is None else timed.us_per_1000
