"""What changed since the last run: the figures of the report before this one, of the same folder or of another run's.

The folder keeps the figures of its reports (report_history.json), one entry a bundle, the newest last. For a run a day,
in a folder each, `sluice report DIR --since DIR` names the one to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.atomic_write import aside
from contracts.errors import DataError
from contracts.summaries.run import EvaluatedRanker, RunSummary
from sluice.report.gathered import gathered

HISTORY, MOST = "report_history.json", 50
FALLING = ("log loss", "ECE", "p50, ms", "p99, ms", "failed requests", "parity mismatches", "bundle, MB",
           "seconds in all")


class Told(BaseModel):
    """The figures of one report, of the bundle `version`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    figures: dict[str, float]


class History(BaseModel):
    """The newest last."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reports: tuple[Told, ...] = ()


class Change(NamedTuple):
    """`better` None where neither way is."""

    figure: str
    before: float
    now: float
    better: bool | None

    @property
    def difference(self) -> float:
        return self.now - self.before


class Changes(NamedTuple):
    """Against the bundle `version`."""

    version: str
    rows: list[Change]


def changes(folder: Path, run: RunSummary, since: Path | None = None) -> Changes | None:
    """None where there is nothing to compare with; remembers this run. Raises DataError where `since` holds no run."""
    now = told(run)
    history = _history(folder)
    before = told(gathered(since)) if since is not None else _before(history, now)
    kept = tuple(one for one in history.reports if one.version != now.version)
    with aside(folder / HISTORY) as draft:
        draft.write_text(History(reports=(*kept, now)[-MOST:]).model_dump_json(indent=1) + "\n", encoding="utf-8")
    return None if before is None else Changes(before.version, compared(before.figures, now.figures))


def compared(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """Of figures that both have."""
    return [Change(name, before[name], value, _better(name, value - before[name])) for name, value in now.items()
            if name in before]


def told(run: RunSummary) -> Told:
    """The figures that matter first."""
    found: dict[str, float | None] = {}
    best = (run.models or {}).get(run.ranker or "")
    if best is not None:
        found |= {"AUC": best.auc, "GAUC": best.gauc, "log loss": best.log_loss, "ECE": best.ece}
        if isinstance(best, EvaluatedRanker):
            found["share of the oracle's AUC"] = best.share_of_oracle
    if run.slate:
        found |= {"share of the oracle's clicks": run.slate.clicks.funnel,
                  "share of the oracle's value": run.slate.value.funnel}
    if run.prerank:
        found["pre-ranker's recall"] = run.prerank.fscd.recall
    if run.serving:
        found |= {"p50, ms": run.serving.p50_ms, "p99, ms": run.serving.p99_ms, "failed requests": run.serving.errors}
    parity = run.parity or (run.bundle.parity if run.bundle else None)
    if parity:
        found["parity mismatches"] = parity.mismatches
    if run.crosses:
        found["crosses found"] = len(run.crosses.crosses)
    if run.features and "train" in run.features.examples:
        found["training rows"] = run.features.examples["train"].rows
    if run.bundle:
        found |= {"items": run.bundle.items, "bundle, MB": run.bundle.bytes / 1e6}
    found["seconds in all"] = run.seconds
    version = run.bundle.version if run.bundle else run.name
    return Told(version=version, figures={name: float(value) for name, value in found.items() if value is not None})


def _better(name: str, difference: float) -> bool | None:
    if not difference or name in ("crosses found", "training rows", "items"):
        return None
    return (difference < 0) == (name in FALLING)


def _before(history: History, now: Told) -> Told | None:
    others = [one for one in history.reports if one.version != now.version]
    return others[-1] if others else None


def _history(folder: Path) -> History:
    path = folder / HISTORY
    try:
        return History.model_validate_json(path.read_bytes()) if path.exists() else History()
    except ValidationError as error:
        raise DataError(f"{path} is damaged ({error.errors()[0]['msg']}); remove it") from None
