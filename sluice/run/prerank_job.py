"""`sluice prerank`: candidates as retrieval returns them, the frontier, the choice, and what each pre-ranker takes.

Serving's code makes the candidates, models/ trains on them, serving's code times the result. What decides are quality
and costs: those of the cost file, or of the formula.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from contracts.artifacts import WEIGHTS, Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from contracts.features.field_costs import MeasuredCosts
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.train import RankerSummary, TowerSummary, TrainSummary
from models.preranking import job as fscd_job
from models.preranking import plot as prerank_plot
from models.tracking.tracking import Tracker
from sluice.run.prerank_candidates import write_candidates
from sluice.run.prerank_timing import with_times

TRACKED = ("recall", "hit_rate", "auc", "cost", "us_per_1000", "fields_kept")
PICTURE = "frontier.png"


def choose_pre_ranker(
    config: Config, out: Artifacts, costs: Path | None, seed: int | None, on_progress: OnProgress, force: bool = False
) -> PrerankSummary:
    """Writes OUT/candidates, OUT/models/fscd and OUT/prerank/summary.json, which it also returns.

    What was made from the same settings, models, costs and seed is kept, unless `force`. Raises ConfigError for a log
    without items or times.
    """
    if not (config.log.item_id and config.log.event_time):
        raise ConfigError("a pre-ranker is chosen on past requests; set log.item_id and log.event_time")
    started, chosen = time.perf_counter(), config.seed if seed is None else seed
    digest = _digest(config, out, costs, chosen)
    known = summary.kept(out.prerank, PrerankSummary)
    if known is not None and known.digest == digest and (out.model("fscd") / WEIGHTS).exists() and not force:
        return known
    (out.prerank / summary.FILE).unlink(missing_ok=True)
    spec = FeatureSpec.read(out.encoding)
    loaded, requests = write_candidates(config, out, spec, chosen, on_progress)
    measured = None if costs is None else MeasuredCosts.read(costs)
    task = fscd_job.make_task(config, out, spec, measured, chosen, on_progress)
    outcome = fscd_job.train_pre_ranker(task, config, out, loaded.settings.ranker)
    on_progress("timing", 0, 1)
    timed = with_times(outcome.figures, outcome, loaded, requests)
    found = PrerankSummary(**dict(timed), digest=digest, cost_file=None if costs is None else costs.name,
                           seconds=round(time.perf_counter() - started, 1))
    _track(config, out, found)
    summary.write(out.prerank, found)
    return found


def _digest(config: Config, out: Artifacts, costs: Path | None, seed: int) -> str:
    ranker = summary.required(out.out / "models", TrainSummary, "sluice train").ranker
    towers_and_ranker = (summary.read(out.model("two_tower"), TowerSummary),
                         summary.read(out.model(ranker), RankerSummary))
    parts = [config.prerank.model_dump_json(), config.retrieve.model_dump_json(), config.rerank.model_dump_json(),
             ranker, [known.digest if known else None for known in towers_and_ranker],
             bundle.digest(costs) if costs else None, seed]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _track(config: Config, out: Artifacts, found: PrerankSummary) -> None:
    with Tracker(out.out, config.name) as tracker:
        run = tracker.start("prerank", {"prerank": config.prerank.model_dump(mode="json"), "kept": found.kept})
        for step, point in enumerate(found.frontier):
            run.metrics({key: getattr(point, key) for key in TRACKED}, step)
        if prerank_plot.available():
            out.prerank.mkdir(parents=True, exist_ok=True)
            prerank_plot.write(out.prerank / PICTURE, found)
            run.artifact(out.prerank / PICTURE)
        run.artifact(out.model("fscd") / WEIGHTS)
