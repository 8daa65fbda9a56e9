"""The frontier as a picture: recall against microseconds, beside the dot product and the ranker."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def available() -> bool:
    """Matplotlib is an optional part."""
    return importlib.util.find_spec("matplotlib") is not None


def write(path: Path, figures: Mapping[str, Any]) -> None:
    """`figures` as in OUT/prerank/summary.json."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    draw(figure.add_subplot(), figures)
    figure.savefig(path, dpi=90)


def draw(axes: Any, figures: Mapping[str, Any]) -> None:
    points = sorted(figures["frontier"], key=lambda point: point["us_per_1000"])
    axes.errorbar([p["us_per_1000"] for p in points], [p["recall"] for p in points],
                  yerr=[1.96 * p["recall_error"] for p in points], fmt="o-", capsize=3, label="FSCD, validation")
    for point in [points[0], points[-1], *(one for one in points if one["chosen"])]:  # the others lie close
        mark = "bold" if point["chosen"] else "normal"
        axes.annotate(f"{point['fields_kept']} fields", (point["us_per_1000"], point["recall"]), fontweight=mark,
                      xytext=(4, -14), textcoords="offset points", fontsize=8)
    for name, sign in (("fscd", "*"), ("dot_product", "s"), ("full_ranker", "D")):
        axes.plot(figures[name]["us_per_1000"], figures[name]["recall"], sign, markersize=9,
                  label=f"{name.replace('_', ' ')}, test")
    axes.set_xscale("log")
    axes.set_xlabel("microseconds per 1,000 candidates")
    axes.set_ylabel("recall of the ranker's top in the kept set")
    axes.legend(frameon=False)
