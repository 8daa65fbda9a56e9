"""How far what decided a day of the demo lies from its limit, in standard errors: positive where nothing is refused.

    gate    (lower 95% bound + margin) / s                    GAUC, challenger minus champion
            (upper 95% bound + margin) / s                    clicks that retrieval finds, challenger minus champion
            from the interval to the nearer limit / s         log of predicted over observed
    watch   from the interval to the nearer limit / s         log of predicted over observed
    quality (limit - share) / sqrt(share (1 - share) / rows)  shares of nulls, new values and clicks
            (limit - rows) / sqrt(rows)                       rows
            limit / value - 1                                 drifts, and what hangs on the machine's pace: the gate's
                                                              latency, the watch's other figures (by their lower 95%
                                                              bounds), the slowest answer; no standard errors

Limits of the gate and of the watch count from the 95% interval, as they do: 0 is a verdict that may fall either way,
-4 one that chance turns round in 30 thousand such days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from contracts.artifacts import Artifacts
from contracts.config.days import Gate
from contracts.release import gate, watch
from contracts.release.gate import GateSummary
from contracts.release.watch import WatchSummary
from contracts.summaries import summary
from contracts.summaries.airflow_demo import Judged
from contracts.summaries.quality import Finding, QualitySummary
from pipelines.jobs import quality_job

CLICKS = "predicted_over_observed"
Z = 1.96


def of_day(out: Artifacts, day: str) -> list[Judged]:
    """What quality gate, promotion gate and watch judged of the run of `day`, as far as it got."""
    data = summary.read(quality_job.folder_of(out, day), QualitySummary)
    verdict = summary.read(out.out / gate.FOLDER, GateSummary)
    watched = summary.read(out.out / watch.FOLDER, WatchSummary)
    return [*(of_quality(data) if data else []), *(of_gate(verdict) if verdict else []),
            *(of_watch(watched) if watched else [])]


def of_quality(found: QualitySummary) -> list[Judged]:
    """The nearest to its limit, or the farthest beyond it, of shares and counts, and of the drifts."""
    rows = next((figure.value for figure in found.figures if figure.figure == "rows"), 1.0)
    limited = [figure for figure in found.figures if figure.high is not None]
    counted = [_counted(figure, rows) for figure in limited if not figure.figure.startswith("psi")]
    drifts = [_drift(figure) for figure in limited if figure.figure.startswith("psi")]
    return [min(kind, key=lambda judged: judged.distance) for kind in (counted, drifts) if kind]


def of_gate(found: GateSummary) -> list[Judged]:
    """Ranking, retrieval, calibration and latency, where they were judged."""
    made, settings = list[Judged](), found.settings or Gate()
    gain, recall, clicks, spent = found.difference, found.recall, found.calibration, found.milliseconds
    if gain:
        made.append(Judged(figure=f"gate: {gain.figure} gain", value=gain.value, limit=f"low >= -{settings.margin:g}",
                           distance=(gain.low + settings.margin) / gain.standard_error))
    if recall:
        error = max(recall.standard_error, 1 / recall.clicks)  # of no difference, as of one click
        made.append(Judged(figure="gate: retrieval gain", value=recall.value,
                           limit=f"high >= -{settings.max_recall_loss:g}",
                           distance=(recall.high + settings.max_recall_loss) / error))
    if clicks:
        made.append(_between("gate: predicted over observed", clicks.value, clicks.low, clicks.high,
                             1 + settings.max_miscalibration))
    if spent:
        ratio = spent.challenger / spent.champion
        made.append(Judged(figure="gate: latency ratio", value=ratio, limit=f"<= {settings.max_latency_ratio:g}",
                           distance=settings.max_latency_ratio / ratio - 1, of_limit=True))
    return made


def of_watch(found: WatchSummary) -> list[Judged]:
    """Clicks, which alone are meant to decide here, and of the others the nearest to its limit."""
    clicks = [_between("watch: predicted over observed", figure.value, figure.low, figure.high, figure.limit)
              for figure in found.figures
              if figure.name == CLICKS and figure.value is not None and figure.high is not None]
    others = [Judged(figure=f"watch: {figure.name}", value=figure.value or 0.0, limit=f"low <= {figure.limit:g}",
                     distance=figure.limit / figure.low - 1, of_limit=True)
              for figure in found.figures if figure.name != CLICKS and figure.low > 0]
    return [*clicks, *sorted(others, key=lambda judged: judged.distance)[:1]]


def of_answers(seconds: Sequence[float], limit: float) -> list[Judged]:
    """The slowest answer to a user, from when it was due."""
    slowest = max(seconds, default=0.0)
    return [Judged(figure="users: seconds to the slowest answer", value=slowest, limit=f"<= {limit:g}",
                   distance=limit / slowest - 1, of_limit=True)] if slowest else []


def _between(figure: str, value: float, low: float, high: float, limit: float) -> Judged:
    """Refused where the whole interval lies beyond `limit` or below its inverse; s by the side that is nearer."""
    above = Z * math.log(limit / low) / math.log(value / low) if value > low > 0 else math.inf
    below = Z * math.log(high * limit) / math.log(high / value) if high > value > 0 else math.inf
    return Judged(figure=figure, value=value, limit=f"{1 / limit:.3f} to {limit:.3f}", distance=min(above, below))


def _counted(found: Finding, rows: float) -> Judged:
    """Poisson's error of a number of rows, the binomial one of a share of them; of no such row, as of one."""
    share = min(max(found.value, 1 / rows), 1 - 1 / rows)
    error = math.sqrt(rows) if found.figure == "rows" else math.sqrt(share * (1 - share) / rows)
    high = ((found.high or 0.0) - found.value, f"<= {found.high:.4g}")
    low = (found.value - found.low, f">= {found.low:.4g}") if found.low is not None else high
    left, limit = min(high, low)
    return Judged(figure=f"quality: {found.figure}", value=found.value, limit=limit, distance=left / error)


def _drift(found: Finding) -> Judged:
    assert found.high is not None
    return Judged(figure=f"quality: {found.figure}", value=found.value, limit=f"<= {found.high:.4g}",
                  distance=found.high / max(found.value, 1e-9) - 1, of_limit=True)
