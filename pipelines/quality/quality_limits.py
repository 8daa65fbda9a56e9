"""A day's figures against limits learned from the days before it.

    rows, label_rate                       both ways, judged as logarithms
    null_rate.COLUMN                       upwards
    churn.COLUMN   columns of keys         upwards: share of values that no earlier day had
    psi.COLUMN                             upwards: distance from the earlier days' distribution

    limit = median of the earlier days +- max(deviations x 1.4826 x MAD, floor)       MAD: median absolute deviation

A day before is judged by the days before it, as it was in its turn, so that its figures are what this day's are held
against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contracts.config.days import Quality
from contracts.errors import ConfigError
from contracts.features.drift import ColumnProfile, churn, psi
from contracts.summaries.quality import Finding
from pipelines.quality.day_profile import DayProfile

NORMAL = 1.4826  # the MAD of a normal distribution is its standard deviation over this
BOTH_WAYS = ("rows", "label_rate")


WORDS = {
    "rows": "the number of rows", "label_rate": "the label rate", "null_rate": "the share of nulls",
    "churn": "the share of values never seen before", "psi": "the drift (PSI) from the earlier days",
}


def sentence(finding: Finding) -> str:
    """What a refused figure is, its limit, and the key that would set another."""
    name, column = finding.figure.partition(".")[0], finding.column
    limits = f"at most {finding.high:.4g}" if finding.low is None else f"{finding.low:.4g} to {finding.high:.4g}"
    about = f"column {column!r}: {WORDS[name]}" if column else WORDS[name]
    return f"{about} is {finding.value:.4g}, the limit {limits} (quality.limits {finding.figure!r})"


def figures(day: DayProfile, before: Sequence[DayProfile]) -> dict[str, float]:
    """All figures of a day; those that need earlier days are left out where there are none."""
    found = {"rows": float(day.rows), "label_rate": day.label_rate}
    for name, column in day.columns.items():
        found[f"null_rate.{name}"] = column.null_rate
        known = [(past.columns[name], _present(past, past.columns[name])) for past in before if name in past.columns]
        if not known or not _present(day, column):
            continue
        found[f"psi.{name}"] = psi(column, _present(day, column), known)
        if column.keys:
            found[f"churn.{name}"] = churn(column, [profile for profile, _ in known])
    return found


def evaluate(day: DayProfile, history: Sequence[DayProfile], settings: Quality) -> list[Finding]:
    """One finding per figure. Raises ConfigError when a configured limit names no figure of the day."""
    earlier = sorted((past for past in history if past.day < day.day), key=lambda past: past.day)
    history = earlier[-settings.history_days:]
    now = figures(day, history)
    unknown = [name for name in settings.limits if name.partition(".")[2] not in ("", *day.columns)]
    if unknown:
        raise ConfigError(f"quality.limits {unknown[0]!r}: there is no such column; "
                          f"there are: {', '.join(day.columns)}")
    past = [figures(profile, history[:place]) for place, profile in enumerate(history)]
    limits = {name: _limits(name, [known[name] for known in past if name in known], settings) for name in now}
    return [Finding(figure=name, value=value, low=limits[name][0], high=limits[name][1]) for name, value in now.items()]


def _present(day: DayProfile, column: ColumnProfile) -> int:
    return round(day.rows * (1 - column.null_rate))


def _limits(name: str, past: list[float], settings: Quality) -> tuple[float | None, float | None]:
    given = settings.limits.get(name)
    if isinstance(given, tuple):
        return given
    if given is not None:
        return None, float(given)
    if len(past) < settings.min_history:
        return None, None
    kind = name.partition(".")[0]
    scale = [math.log(max(value, 1e-12)) for value in past] if kind in BOTH_WAYS else past
    middle = float(np.median(scale))
    spread = NORMAL * float(np.median(np.abs(np.asarray(scale) - middle)))
    width = max(settings.deviations * spread, getattr(settings, f"{kind}_floor"))
    return (math.exp(middle - width), math.exp(middle + width)) if kind in BOTH_WAYS else (None, middle + width)
