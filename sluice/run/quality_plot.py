"""What a refused day looks like beside the days before: each refused column's distribution, and rows and label rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.features.drift import ColumnProfile
from contracts.summaries.quality import Finding
from pipelines.quality.day_profile import DayProfile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS, MOST_KEYS = 6, 12
NOW, BEFORE = "#b91c1c", "#64748b"


def draw(
    path: Path, today: DayProfile, history: Sequence[DayProfile], figures: Sequence[Finding], columns: Sequence[str]
) -> Path:
    """One panel per refused column, worst drift first, after one of the days' sizes."""
    from matplotlib.figure import Figure

    drift = {finding.column: finding.value for finding in figures if finding.figure.startswith("psi.")}
    shown = sorted(columns, key=lambda name: -drift.get(name, 0.0))[:MOST_PANELS]
    figure = Figure(figsize=(9, 2.8 * (len(shown) + 1)), layout="constrained")
    days, *panels = figure.subplots(len(shown) + 1, 1, squeeze=False)[:, 0]
    _days(days, [*history, today])
    for axes, name in zip(panels, shown, strict=True):
        _column(axes, name, today.columns[name], [one.columns[name] for one in history if name in one.columns])
    figure.suptitle(f"data of {today.day} (red) beside the days before")
    figure.savefig(path, dpi=90)
    return path


def _days(axes: Axes, days: Sequence[DayProfile]) -> None:
    colors = [BEFORE] * (len(days) - 1) + [NOW]
    axes.bar([one.day for one in days], [one.rows for one in days], color=colors)
    axes.set_ylabel("rows")
    axes.tick_params(axis="x", rotation=45)
    rate = axes.twinx()
    rate.plot([one.day for one in days], [one.label_rate for one in days], color="black", marker="o")
    rate.set_ylabel("label rate")
    rate.set_ylim(0, None)


def _column(axes: Axes, name: str, now: ColumnProfile, before: Sequence[ColumnProfile]) -> None:
    nulls = sum(one.null_rate for one in before) / max(len(before), 1)
    axes.set_title(f"{name}: nulls {now.null_rate:.1%}, before {nulls:.1%}", fontsize=9)
    if now.quantiles:
        steps = [n / (len(now.quantiles) - 1) for n in range(len(now.quantiles))]
        for one in before:
            if one.quantiles:
                axes.plot(one.quantiles, steps, color=BEFORE, alpha=0.4)
        axes.plot(now.quantiles, steps, color=NOW)
        axes.set_ylabel("share at or below")
        return
    pooled: Counter[str] = Counter()
    for one in before:
        pooled.update(one.keys)
    keys = [key for key, _ in (pooled + Counter(now.keys)).most_common(MOST_KEYS)]
    places = range(len(keys))
    total = max(sum(one.values for one in before), 1)
    axes.bar([place - 0.2 for place in places], [pooled[key] / total for key in keys], 0.4, color=BEFORE)
    shares = [now.keys.get(key, 0) / max(now.values, 1) for key in keys]
    axes.bar([place + 0.2 for place in places], shares, 0.4, color=NOW)
    axes.set_xticks(list(places), [key[:20] for key in keys], rotation=30, fontsize=8)
    axes.set_ylabel("share")
