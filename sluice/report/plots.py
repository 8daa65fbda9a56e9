"""The report's plots: figures in, inline SVG out; an empty string where there is nothing to draw."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from contracts.summaries.airflow_demo import DemoDay
from contracts.summaries.days import PlatformDay
from contracts.summaries.demo import HourRun, SlateEvaluation, StageLosses
from contracts.summaries.federated import SettingFigures
from contracts.summaries.leaks import FieldFigures, ValueGroup
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.run import EvaluatedRanker, RunSummary
from contracts.summaries.train import ChannelsSummary, ChannelSummary, RankerSummary, ReliabilityCurve

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, SOFT, ALARM = "#1f2933", "#0072b2", "#cbd5e1", "#d55e00"
LINES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")  # Okabe and Ito (2008)
SLICES = {"popularity": "the item's third of the training actions", "history": "actions known when asked",
          "age": "time since anybody's first action on the item"}
MARKS, DASHES = tuple("osD^vPX"), ("-", "--", "-.", ":", "-", "--", "-.")


def _canvas(width: float = 6.4, height: float = 3.0) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=LINES, marker=MARKS, linestyle=DASHES)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure: Figure) -> str:
    sink = io.StringIO()
    figure.savefig(sink, format="svg", transparent=True, metadata={"Date": None})
    text = sink.getvalue()
    return text[text.index("<svg") :]


def _bars(axes: Axes, values: Mapping[str, float], text: str = "{:.3f}") -> None:
    names = list(values)
    bars = axes.barh(names, [values[name] for name in names], color=ACCENT)
    axes.bar_label(bars, [text.format(values[name]) for name in names], padding=3, color=INK,
                   bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # a line may run behind it
    axes.invert_yaxis()
    axes.margins(x=0.15)


def model_bars(models: Mapping[str, RankerSummary]) -> str:
    """AUC of every model, and the oracle's as a line where it is known."""
    if not models:
        return ""
    figure, axes = _canvas(height=0.5 + 0.4 * len(models))
    _bars(axes, {name: figures.auc for name, figures in models.items()}, "{:.4f}")
    best = next((figures.oracle_auc for figures in models.values() if isinstance(figures, EvaluatedRanker)), None)
    if best is not None:
        axes.axvline(best, color=INK, linestyle="--", linewidth=1)
        axes.annotate("oracle", (best, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom", color=INK)
    axes.set_xlim(0.5, None)
    axes.set_xlabel("AUC, test window")
    return _svg(figure)


def heat_maps(adjacency: Mapping[str, np.ndarray], columns: Sequence[str]) -> str:
    """One map per layer of the cross search, one below the other, so that the names of fields can be read: row i,
    column j = how much field i is extended by field j."""
    if not adjacency:
        return ""
    from matplotlib.figure import Figure

    size = 1.6 + 0.16 * len(columns)
    figure = Figure(figsize=(size, size * len(adjacency)), layout="constrained")
    panels = figure.subplots(len(adjacency), 1, squeeze=False)[:, 0]
    for axes, (title, layer) in zip(panels, adjacency.items(), strict=True):
        picture = axes.imshow(layer, vmin=0.0, vmax=1.0, cmap="viridis")
        axes.set_title(title)
        axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=7)
        axes.set_yticks(range(len(columns)), columns, fontsize=7)
    figure.colorbar(picture, ax=panels, shrink=0.3)
    return _svg(figure)


def reliability(curve: ReliabilityCurve | None) -> str:
    """Observed against predicted rate by bins of equal mass."""
    if curve is None:
        return ""
    predicted, observed = curve.predicted, curve.observed
    figure, axes = _canvas(4.2, 3.6)
    top = max(*predicted, *observed) * 1.05
    axes.plot([0, top], [0, top], color=SOFT, linewidth=1, marker="", linestyle="-")
    axes.plot(predicted, observed, color=ACCENT, marker="o", linestyle="-")
    axes.set_xlabel("predicted click rate")
    axes.set_ylabel("observed click rate")
    return _svg(figure)


def training_curves(models: Mapping[str, RankerSummary]) -> str:
    """Validation loss by epoch. One of a single epoch (popularity) is no curve, and would take the room of the others:
    it is left out where there are curves."""
    histories = {name: figures.history for name, figures in models.items() if figures.history}
    histories = {name: history for name, history in histories.items() if len(history) > 1} or histories
    if not histories:
        return ""
    figure, axes = _canvas()
    for name, history in histories.items():
        axes.plot([epoch.epoch for epoch in history], [epoch.validation_loss for epoch in history], label=name)
    axes.set_xlabel("epoch")
    axes.set_xticks(range(1, 1 + max(len(history) for history in histories.values())))
    axes.set_ylabel("validation log loss")
    axes.legend(frameon=False, loc="best")
    return _svg(figure)


def federated_curves(settings: Mapping[str, SettingFigures]) -> str:
    """Test AUC against rounds, one line per setting; nothing before two rounds were evaluated."""
    curves = {
        name: [(entry.round, entry.auc) for entry in figures.history if entry.auc is not None]
        for name, figures in settings.items()
    }
    if max(map(len, curves.values()), default=0) < 2:
        return ""
    figure, axes = _canvas()
    for name, points in curves.items():
        axes.plot([at for at, _ in points], [auc for _, auc in points], label=name, markersize=3)
    axes.set_xlabel("round")
    axes.set_ylabel("AUC, test window")
    axes.legend(frameon=False, loc="best")
    return _svg(figure)


def day_lines(days: Sequence[PlatformDay]) -> str:
    """Share of the oracle's clicks of each platform, day by day, with standard errors over visits."""
    if not days:
        return ""
    figure, axes = _canvas()
    for platform in days[0].share_of_oracle:
        shares = [day.share_of_oracle[platform] for day in days]
        errors = [day.standard_error[platform] for day in days]
        axes.errorbar([day.day for day in days], shares, errors, markersize=3, capsize=2, label=platform)
    axes.set_xlabel("day")
    axes.set_ylabel("share of the oracle's clicks")
    axes.legend(frameon=False, loc="best")
    return _svg(figure)


def demo_days(days: Sequence[DemoDay]) -> str:
    """Share of the oracle's value of each day under Airflow; days with a mishap are hatched and named."""
    if not days:
        return ""
    figure, axes = _canvas()
    bars = axes.bar([day.day for day in days], [day.share_of_oracle for day in days], color=ACCENT, edgecolor="white")
    for bar, day in zip(bars, days, strict=True):
        if day.mishap:
            bar.set_color(ALARM)
            bar.set_hatch("//")
            bar.set_edgecolor("white")
    axes.bar_label(bars, [f"{day.share_of_oracle:.3f}\n{day.mishap}" for day in days], padding=3, color=INK, fontsize=7)
    axes.set_ylim(0.0, 1.15)
    axes.set_xlabel("day")
    axes.set_ylabel("share of the oracle's value")
    return _svg(figure)


def hour_shares(runs: Mapping[str, HourRun], kind: Literal["clicks", "value"]) -> str:
    """Share of the oracle's clicks or value by ten minutes, one line per run; the oracle's is 1."""
    figure, axes = _canvas()
    for name, run in runs.items():
        points = [(part.minute, share) for part in run.slices if (share := getattr(part, kind)) is not None]
        axes.plot(*zip(*points, strict=True), markersize=3, label=f"sent: {name.replace('_', ' ')}")
    axes.axhline(1.0, color=INK, linestyle="--", linewidth=1, marker="", label="oracle")
    axes.set_xlabel("ten minutes from minute")
    axes.set_ylabel(f"share of the oracle's {kind}")
    axes.set_ylim(0.0, 1.4)  # room for the legend above the oracle
    axes.legend(frameon=False, fontsize=8, loc="upper center", ncols=2)
    return _svg(figure)


def hour_losses(runs: Mapping[str, HourRun]) -> str:
    """Bid x probability of what was shown and could not be had, by ten minutes."""
    figure, axes = _canvas(height=2.4)
    for name, run in runs.items():
        axes.plot([part.minute for part in run.slices], [part.lost for part in run.slices], markersize=3,
                  label=f"sent: {name.replace('_', ' ')}")
    axes.set_xlabel("ten minutes from minute")
    axes.set_ylabel("value lost")
    axes.legend(frameon=False, fontsize=8, loc="best")
    return _svg(figure)


def channel_bars(found: ChannelsSummary | None) -> str:
    """Recall of each channel alone and of their mix, at the largest number of candidates."""
    if found is None or not found.recall:
        return ""
    candidates, at = max(found.recall.items(), key=lambda entry: int(entry[0]))
    shares = {**at.alone, "mixed": at.mixed}
    figure, axes = _canvas(height=0.5 + 0.3 * len(shares))
    _bars(axes, {name.replace("_", " "): share for name, share in shares.items() if share is not None})
    axes.set_xlabel(f"share of the test window's clicks among {candidates} candidates")
    return _svg(figure)


def channel_slices(channels: Mapping[str, ChannelSummary]) -> str:
    """Recall@10 of each model by slice of the targets, a panel for each kind of slice; slices without a target are left
    out."""
    known = {name.replace("_", " "): found.recall_by for name, found in channels.items() if found.recall_by}
    if not known:
        return ""
    from matplotlib.figure import Figure

    kinds = list(next(iter(known.values())))
    figure = Figure(figsize=(6.4, 2.2 * len(kinds)), layout="constrained")
    for axes, kind in zip(figure.subplots(len(kinds), squeeze=False)[:, 0], kinds, strict=True):
        axes.set_prop_cycle(color=LINES, marker=MARKS, linestyle=DASHES)
        axes.spines[["top", "right"]].set_visible(False)
        for name, parts in known.items():
            axes.plot(list(parts[kind]), list(parts[kind].values()), label=name)
        axes.set_ylabel("Recall@10")
        axes.set_xlabel(SLICES[kind])
    figure.axes[0].legend(frameon=False, fontsize=8, loc="best")
    return _svg(figure)


def slate_bars(slate: SlateEvaluation | None) -> str:
    """What each policy's slates are worth beside the oracle's, in clicks and in value."""
    if slate is None:
        return ""
    figure, axes = _canvas()
    _bars(axes, {f"clicks: {policy}": share for policy, share in slate.clicks} | {
        f"value: {policy}": share for policy, share in slate.value})
    axes.axvline(1.0, color=INK, linestyle="--", linewidth=1)
    axes.set_xlabel("share of the oracle's slate")
    return _svg(figure)


def stage_losses(loss: StageLosses | None) -> str:
    """Per cent of the oracle's value that each stage loses."""
    if loss is None:
        return ""
    figure, axes = _canvas(height=2.2)
    _bars(axes, {stage: 100 * lost for stage, lost in loss}, "{:.2f} %")
    axes.set_xlabel("value lost, % of the oracle's slate")
    return _svg(figure)


def field_bars(fields: Mapping[str, FieldFigures], suspected: Collection[str], most: int = 15) -> str:
    """AUC of the fields that say most alone; the suspected ones stand out."""
    if not fields:
        return ""
    shown = sorted(fields, key=lambda name: (name not in suspected, -fields[name].auc))[:most]
    figure, axes = _canvas(height=0.6 + 0.26 * len(shown))
    _bars(axes, {name: fields[name].auc for name in shown})
    for bar, name in zip(axes.patches, shown, strict=True):
        bar.set_color(ALARM if name in suspected else ACCENT)
        bar.set_hatch("//" if name in suspected else "")
        bar.set_edgecolor("white")
    axes.set_xlim(0.4, None)
    axes.set_xlabel("AUC of one field alone, hatched where suspected")
    return _svg(figure)


def value_rates(profile: Sequence[ValueGroup]) -> str:
    """Rate of positives by the values of one field."""
    if not profile:
        return ""
    figure, axes = _canvas(4.6, 0.7 + 0.26 * len(profile))
    _bars(axes, {f"{group.value} ({group.share:.0%} of rows)": group.rate for group in profile}, "{:.1%}")
    axes.set_xlabel("rate of positives")
    return _svg(figure)


def prerank_frontier(prerank: PrerankSummary | None) -> str:
    """Recall of the ranker's top against microseconds, as models/preranking/plot.py draws it."""
    if prerank is None:
        return ""
    from models.preranking import plot as prerank_plot

    figure, axes = _canvas(height=3.6)
    prerank_plot.draw(axes, prerank)
    return _svg(figure)


def job_seconds(run: RunSummary) -> str:
    """Seconds of each job."""
    jobs = {"simulation": run.simulation, "crosses": run.crosses, "pretrain": run.pretrain, "train": run.train,
            "prerank": run.prerank, "bundle": run.bundle}
    seconds = {"features": sum(run.features.seconds.values())} if run.features else {}
    seconds |= {name: job.seconds for name, job in jobs.items() if job is not None and job.seconds}
    if not seconds:
        return ""
    figure, axes = _canvas(height=0.6 + 0.35 * len(seconds))
    _bars(axes, seconds, "{:.1f} s")
    axes.set_xlabel("seconds")
    return _svg(figure)
