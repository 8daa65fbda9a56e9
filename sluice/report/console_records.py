"""What a run's folder and the registry say of past days, as tables for the console. It only reads.

    python -m sluice.report.console_records OUT [--registry URI]      prints them as JSON

OUT is the folder of a run, or one that holds a run a day. The console has it in a process of its own, so that a server
needs neither the packages of training nor their memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.errors import DataError
from contracts.release import gate, registration, watch
from contracts.release.gate import Estimate, GateSummary
from contracts.release.registration import RegistrationSummary
from contracts.release.watch import WatchSummary
from contracts.shown import without_passwords
from contracts.summaries import summary
from contracts.summaries.bundle import BundleSummary
from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.days import PlatformDay
from contracts.summaries.federated import FederateSummary, ServerAppSummary, SettingFigures
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.quality import QualitySummary
from contracts.summaries.summary import Record
from sluice.report.gathered import deployed, gathered

Cell = str | int | float | None
MOST_RUNS = 60


class Curve(Record):
    """Points (x, y) by the name of their line."""

    x: str
    y: str
    lines: dict[str, tuple[tuple[float, float], ...]]


class Section(Record):
    """A table; a cell None is empty. `curve` is drawn above it."""

    title: str
    note: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    curve: Curve | None = None


def sections(folder: Path, registry: str | None = None) -> list[Section]:
    """Those of which there is something to show. A summary that cannot be read is a section that says so."""
    runs, latest = _runs(folder), _latest(folder)
    made = [_days(runs), *_versions(folder, latest, registry), *_of_run(latest)]
    return [section for section in made if section is not None and section.rows]


def _runs(folder: Path) -> list[Path]:
    """The folder itself, else those below it, newest last."""
    below = sorted(path for path in folder.iterdir() if _is_run(path)) if folder.is_dir() else []
    return [folder] if _is_run(folder) else below[-MOST_RUNS:]


def _is_run(folder: Path) -> bool:
    return any((folder / part).exists() for part in ("bundle_job", "bundle", "federated/summary.json", "quality"))


def _latest(folder: Path) -> Path:
    runs = _runs(folder)
    return runs[-1] if runs else folder


def _days(runs: Sequence[Path]) -> Section:
    columns = ("run", "bundle", "data of the day", "ranking gain over the champion (95 %)", "calibration (95 %)",
               "ms, new / champion", "gate", "watch")
    return Section(title="Days: gates, promotions, roll-backs", columns=columns,
                   note="what `sluice quality`, `promote` and `watch` wrote, the newest first",
                   rows=tuple(_day(run) for run in reversed(runs)))


def _day(run: Path) -> tuple[Cell, ...]:
    made, judged = summary.read(run / "bundle_job", BundleSummary), summary.read(run / gate.FOLDER, GateSummary)
    seen = summary.read(run / watch.FOLDER, WatchSummary)
    registered = summary.read(run / registration.FOLDER, RegistrationSummary)
    spent = judged.milliseconds if judged else None
    version = made.version if made else judged.challenger if judged else None
    if registered and version:
        version = f"{version} (version {registered.number})"
    return (run.resolve().name, version, _quality(run), _interval(judged.difference if judged else None, "{:+.4f}"),
            _interval(judged.calibration if judged else None, "{:.3f}"),
            f"{spent.challenger:.2f} / {spent.champion:.2f}" if spent else None, _gate(judged), _watch(seen))


def _quality(run: Path) -> str | None:
    days = [found for path in sorted(Artifacts(run).quality.glob("day=*"))
            if (found := summary.read(path, QualitySummary)) is not None]
    if not days:
        return None
    last = days[-1]
    return f"{last.day}: " + ("; ".join(last.refused) or f"{last.judged} figures within their limits")


def _interval(found: Estimate | None, shown: str) -> str | None:
    if found is None:
        return None
    return f"{shown.format(found.value)} ({shown.format(found.low)} to {shown.format(found.high)})"


def _gate(judged: GateSummary | None) -> str | None:
    if judged is None:
        return None
    if judged.reasons:
        return ("promoted in spite of: " if judged.forced else "refused: ") + "; ".join(judged.reasons)
    return "promoted" if judged.champion else "promoted, the first"


def _watch(seen: WatchSummary | None) -> str | None:
    if seen is None:
        return None
    if seen.roll_back is not None and seen.roll_back.rolled_back:
        return f"rolled back to {seen.roll_back.champion}: " + "; ".join(seen.reasons)
    said = "; ".join(seen.reasons or seen.not_judged or tuple(figure.sentence for figure in seen.figures))
    return f"{seen.answers} answers: {said}"


def _versions(folder: Path, latest: Path, registry: str | None) -> Iterator[Section]:
    """Of the registry that is named, or that a run has left in its folder."""
    own = next((path for path in (folder / "mlflow.db", latest / "mlflow.db") if path.exists()), None)
    if registry is None and own is None:
        return
    from models.tracking.bundle_registry import BundleRegistry, registry_uri

    store = BundleRegistry(registry or registry_uri(None, own.parent if own else None))
    columns = ("bundle", "version", "test AUC", "data until", "promoted", "refused", "rolled back", "now")
    rows = tuple(
        (one.version, int(one.number), _number(one.tags.get("test_auc")), _minute(one.tags.get("data_end")),
         _minute(one.tags.get("promoted")), one.tags.get("refused"), _minute(one.tags.get("rolled_back")),
         ", ".join(aliases) or None)
        for one, aliases in store.all_versions())
    yield Section(title="Versions in the registry", note=store.address, columns=columns, rows=rows)


def _number(tag: str | None) -> float | None:
    """None also of what is not finite, which JSON has no word for."""
    try:
        found = float(tag) if tag else None
    except ValueError:
        return None
    return found if found is not None and math.isfinite(found) else None


def _minute(tag: str | None) -> str | None:
    """A moment of a tag to the minute; what is none, as it is."""
    try:
        return f"{datetime.fromisoformat(tag):%Y-%m-%d %H:%M}" if tag else None
    except ValueError:
        return tag


def _of_run(run: Path) -> Iterator[Section | None]:
    out = Artifacts(run)
    yield _tastes(_tasted(run))
    yield _crosses(summary.read(out.crosses, CrossesSummary))
    yield from _prerank(summary.read(out.prerank, PrerankSummary))
    federated = summary.read(run / "federated", FederateSummary)
    if federated is not None:
        yield from _federated(federated.settings)
    yield _deployed(deployed(run))
    yield _log_drift(run)


def _tasted(run: Path) -> tuple[PlatformDay, ...]:
    """None of a folder without a run's own summary."""
    with contextlib.suppress(DataError):
        return gathered(run).days or ()
    return ()


def _tastes(days: Sequence[PlatformDay]) -> Section | None:
    if not days:
        return None
    platforms = tuple(days[0].share_of_oracle)
    lines = {name: tuple((float(day.day), day.share_of_oracle[name]) for day in days) for name in platforms}
    rows = tuple((str(day.day), *(day.share_of_oracle[name] for name in platforms), day.champion, day.refused or None)
                 for day in days)
    return Section(title="Days with drifting tastes", columns=("day", *platforms, "champion", "refused"), rows=rows,
                   curve=Curve(x="day", y="share of the oracle's clicks", lines=lines))


def _crosses(found: CrossesSummary | None) -> Section | None:
    if found is None:
        return None
    rows = tuple((" x ".join(cross.parts), cross.order, cross.gain, cross.importance, cross.support)
                 for cross in found.crosses)
    return Section(title="Found crosses", note=f"{len(found.crosses)} of {found.proposed} proposed",
                   columns=("cross", "order", "gain, nats", "importance", "keys"), rows=rows)


def _prerank(found: PrerankSummary | None) -> Iterator[Section]:
    if found is None:
        return
    points = sorted(found.frontier, key=lambda point: point.price)
    rows = tuple((point.price, point.fields_kept, point.recall, point.recall_error, point.auc, point.us_per_1000,
                  "chosen" if point.chosen else None) for point in points)
    lines = {"frontier": tuple((point.price, point.recall) for point in points),
             "chosen": tuple((point.price, point.recall) for point in points if point.chosen)}
    yield Section(title="The pre-ranker's frontier", note="sets of fields: cost, and share of the ranker's best kept",
                  columns=("price", "fields", "recall", "±", "AUC", "µs for 1,000", "decision"), rows=rows,
                  curve=Curve(x="price", y="recall", lines=lines))
    dropped = {field.field: field.sentence for field in found.dropped}
    costs = sorted(found.costs.items(), key=lambda pair: -pair[1])
    yield Section(title="Field costs", note=f"of the pre-ranker; {found.fields_kept} of {found.fields_all} fields kept",
                  columns=("field", "cost", "in the pre-ranker", "why it went"),
                  rows=tuple((name, cost, "yes" if name in found.kept else "no", dropped.get(name))
                             for name, cost in costs))


def _federated(settings: Mapping[str, SettingFigures]) -> Iterator[Section]:
    evaluated = {name: tuple((float(entry.round), entry.auc) for entry in figures.history if entry.auc is not None)
                 for name, figures in settings.items()}
    rows = tuple((name, figures.rounds, figures.auc, figures.best_round, figures.bytes_per_client_round / 1024,
                  figures.epsilon, figures.epsilon_noise, figures.single_holder_seen,
                  figures.leak.both[-1] if figures.leak and figures.leak.both else None,
                  sum(figures.dropouts.values()), figures.abandoned, figures.seconds_per_round)
                 for name, figures in settings.items())
    lines = {name: points for name, points in evaluated.items() if points}
    yield Section(title="Federated rounds", note="by setting; AUC on the test window where a round was evaluated",
                  columns=("setting", "rounds", "AUC", "best round", "KiB a client and round", "epsilon a row",
                           "epsilon of the noise", "only holder seen", "held rows proven", "clients lost",
                           "rounds given up", "s a round"), rows=rows,
                  curve=Curve(x="round", y="AUC", lines=lines) if lines else None)


def _deployed(settings: Mapping[str, ServerAppSummary]) -> Section | None:
    if not settings:
        return None
    rows = tuple((name, led.rounds, led.auc_validation, led.predicted_over_observed, led.bytes_per_client_round / 1024,
                  led.epsilon, led.epsilon_noise, led.single_holder_seen) for name, led in settings.items())
    return Section(title="Deployed federated rounds", note="AUC and calibration on the nodes' own later rows",
                   columns=("setting", "rounds", "AUC", "predicted / observed", "KiB a client and round",
                            "epsilon a row", "epsilon of the noise", "only holder seen"), rows=rows)


def _log_drift(run: Path) -> Section | None:
    days = sorted(Artifacts(run).quality.glob("day=*"))
    found = summary.read(days[-1], QualitySummary) if days else None
    if found is None:
        return None
    psi = sorted((one for one in found.figures if one.figure.startswith("psi.")), key=lambda one: -one.value)
    return Section(title=f"Drift of the log on {found.day}", note="PSI from the days before, and its limit",
                   columns=("column", "PSI", "limit", "decision"),
                   rows=tuple((one.column, one.value, one.high, "refused" if one.refused else None) for one in psi))


def main(words: Sequence[str] | None = None) -> None:
    """Prints {"sections": [...]}, or {"error": why}."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--registry")
    given = parser.parse_args(words)
    try:
        registry = given.registry or os.environ.get("MLFLOW_TRACKING_URI")
        found = [section.model_dump(mode="json") for section in sections(given.folder, registry)]
        print(json.dumps({"sections": found}))
    except Exception as error:  # of MLflow, of its data base, of files: whatever it is, the console shows a sentence
        lines = str(error).strip().splitlines() or [type(error).__name__]
        print(json.dumps({"error": without_passwords(lines[0])}))


if __name__ == "__main__":
    os.nice(10)  # a server answers beside it
    main()
