"""The records of a run's folder, whichever of its jobs were done: the whole run's, or each job's own."""

from __future__ import annotations

from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.bundle import BundleSummary
from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.features import FeaturesSummary
from contracts.summaries.federated import FederateSummary, ServerAppSummary
from contracts.summaries.leaks import LeaksSummary
from contracts.summaries.pair_rates import PairRatesSummary
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.run import RunSummary
from contracts.summaries.train import ChannelsSummary, RankerSummary, ReliabilityCurve, TrainSummary

JOBS = {
    "features": "sluice features",
    "leaks": "sluice features",
    "crosses": "sluice crosses",
    "pretrain": "sluice pretrain",
    "train": "sluice train",
    "prerank": "sluice prerank",
    "bundle": "sluice bundle",
}
OF_FLOWER = "-flower"
OF_FEDERATED = ("features", "leaks", "bundle")


def gathered(folder: Path) -> RunSummary:
    """What OUT/summary.json lacks comes from the summaries of single jobs. Raises DataError where there is none."""
    whole = summary.read(folder, RunSummary)
    jobs = {name: record for name, record in _jobs(Artifacts(folder)).items() if record is not None}
    if whole is None and not jobs:
        raise DataError(f"{folder} has no {summary.FILE}; give the --out folder of a finished run or demo")
    run = whole or RunSummary(name=folder.resolve().name)
    run = run.model_copy(update={name: record for name, record in jobs.items() if getattr(run, name) is None})
    if run.models is None and run.train is not None:
        run = run.model_copy(update={"models": run.train.models, "ranker": run.train.ranker})
    return run


def _jobs(out: Artifacts) -> dict[str, object]:
    federated = summary.read(out.out / "federated", FederateSummary)
    return {
        "features": summary.read(out.features, FeaturesSummary),
        "leaks": summary.read(out.leaks, LeaksSummary),
        "crosses": summary.read(out.crosses, CrossesSummary),
        "pretrain": summary.read(out.pair_rates, PairRatesSummary),
        "train": summary.read(out.out / "models", TrainSummary),
        "retrieval": summary.read(out.channels, ChannelsSummary),
        "prerank": summary.read(out.prerank, PrerankSummary),
        "bundle": summary.read(out.out / "bundle_job", BundleSummary),
        "federated": federated and federated.federated,
        "settings": federated and federated.settings,
        "deployed": deployed(out.out) or None,
    }


def deployed(folder: Path) -> dict[str, ServerAppSummary]:
    """Setting -> what a Flower ServerApp wrote of its rounds in OUT/federated."""
    runs = sorted((folder / "federated" / "runs").glob(f"*{OF_FLOWER}"))
    found = {run.name.removesuffix(OF_FLOWER): summary.read(run, ServerAppSummary) for run in runs}
    return {setting: led for setting, led in found.items() if led is not None}


def missing(run: RunSummary) -> dict[str, str]:
    """Job -> why it is not in the report: the run's own reason where it has one, else the command that does it."""
    if run.days is not None:
        return {}
    rounds = run.federated or run.deployed
    wanted = OF_FEDERATED if rounds is not None and run.train is None else tuple(JOBS)
    left_out = run.skipped or {}
    absent = {name: f"not done here; run `{JOBS[name]}`" for name in wanted if getattr(run, name) is None}
    return {name: reason for name, reason in absent.items() if name not in left_out} | left_out


def reliability_of(folder: Path, ranker: str | None) -> ReliabilityCurve | None:
    """The served ranker's, which its own summary holds."""
    trained = summary.read(Artifacts(folder).model(ranker), RankerSummary) if ranker else None
    return trained.curves.reliability if trained and trained.curves else None
