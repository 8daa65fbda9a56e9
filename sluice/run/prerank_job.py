"""`sluice prerank`: candidates as retrieval returns them, the frontier, the choice, and what each pre-ranker takes.

Serving's code makes the candidates from a bundle assembled as of the start of the test window; models/ trains on them;
serving's code times the result. Times are reported and never decide: what decides is the cost file, or the formula.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np

from contracts import summary
from contracts.artifacts import WEIGHTS, WINDOWS, Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from contracts.features.field_costs import MeasuredCosts
from models.preranking import job as fscd_job
from models.preranking import plot as prerank_plot
from models.preranking.fscd_scorer import FscdSplit
from models.preranking.job import Outcome
from models.preranking.sweep import OnStep
from models.tracking.tracking import Tracker
from serving.assembly.assemble import assemble
from serving.assembly.item_vectors import item_part
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import funnel_timing, item_snapshot, past_requests, retrieved_candidates
from serving.replay.item_snapshot import SnapshotArtifacts
from serving.replay.past_requests import PastRequest
from serving.request.query import RankQuery
from serving.stages.prerank_scorers import DotProductScorer, FscdScorer, Scorer
from sluice.run.emptied_folder import emptied

REPETITIONS = 100
TRACKED = ("recall", "hit_rate", "auc", "cost", "us_per_1000", "fields_kept")
PICTURE = "frontier.png"


def choose_pre_ranker(
    config: Config, out: Artifacts, costs: Path | None, seed: int | None, progress: OnStep, force: bool = False
) -> dict[str, Any]:
    """Writes OUT/candidates, OUT/models/fscd and OUT/prerank/summary.json, which it also returns."""
    if not (config.log.item_id and config.log.event_time):
        raise ConfigError("a pre-ranker is chosen on past requests; set log.item_id and log.event_time")
    started, chosen = time.perf_counter(), config.seed if seed is None else seed
    digest = _digest(config, out, costs, chosen)
    known = summary.read(out.prerank)
    if known.get("digest") == digest and (out.model("fscd") / WEIGHTS).exists() and not force:
        return known
    (out.prerank / summary.FILE).unlink(missing_ok=True)
    spec = FeatureSpec.read(out.encoding)
    loaded, asked = candidates(config, out, spec, chosen, progress)
    measured = None if costs is None else MeasuredCosts.read(costs)
    task = fscd_job.make_task(config, out, spec, measured, chosen, progress)
    outcome = fscd_job.run(task, config, out, loaded.settings.ranker)
    progress("timing", 0, 1)
    found = {**outcome.figures, "digest": digest, "cost_file": None if costs is None else costs.name}
    found = with_times(found, outcome, loaded, asked)
    found["seconds"] = round(time.perf_counter() - started, 1)
    _track(config, out, found)
    summary.write(out.prerank, found)
    return found


def candidates(
    config: Config, out: Artifacts, spec: FeatureSpec, seed: int, progress: OnStep
) -> tuple[LoadedBundle, list[PastRequest]]:
    """OUT/candidates; the bundle as of the test window's start, and the test requests."""
    progress("candidates", 0, 3)
    item_snapshot.write(out, spec)
    loaded, rng = as_of_bundle(config, out), np.random.default_rng(seed)
    retrieved_candidates.items_of(loaded).save(out.candidates)
    s, asked = config.prerank, []
    for number, name in enumerate(WINDOWS):
        progress("candidates", number, 3)
        count, clicks, length = (s.requests, 0, s.list_length) if name == "train" else (
            s.evaluation_requests, s.evaluation_requests, None)
        asked = past_requests.sample(
            out, spec, loaded.items, name, count, clicks, config.features.publish_every, rng)
        retrieved_candidates.retrieve(loaded, asked, rng, length).save(out.candidates / name)
    return loaded, asked


def as_of_bundle(config: Config, out: Artifacts) -> LoadedBundle:
    """Everything but the pre-ranker, with the items as the test window found them; held in memory alone."""
    plain = config.model_copy(update={"prerank": config.prerank.model_copy(update={"kind": "dot_product"})})
    with emptied(out.out / ".as-of") as folder:
        assemble(plain, SnapshotArtifacts(out.out), folder / "build")
        bundle.publish(folder / "build", folder / "bundle", config.name)
        return LoadedBundle.load(folder / "bundle", check_parity=False)


def with_times(
    figures: dict[str, Any], outcome: Outcome, loaded: LoadedBundle, asked: list[PastRequest]
) -> dict[str, Any]:
    """Adds us_per_1000 to the frontier, and us_per_1000 and funnel_ms to the three compared."""
    item_side = figures["item_side"]
    dot, best = DotProductScorer(loaded, loaded.prerank_calibration), fscd_scorer(loaded, outcome.network, item_side)
    points: dict[str, Scorer] = {
        str(n): fscd_scorer(loaded, point.network, item_side) for n, point in enumerate(outcome.points)
    }
    spent = funnel_timing.stage_microseconds(loaded, {"fscd": best, "dot_product": dot, **points}, asked, REPETITIONS)
    names = [loaded.users.key(row) for row in range(min(len(loaded.users), REPETITIONS))] or [""]
    queries = [RankQuery(user=name, limit=loaded.settings.serve.default_limit, explain=False) for name in names]
    whole = funnel_timing.funnel_milliseconds(loaded, {"fscd": best, "dot_product": dot}, queries, REPETITIONS)
    compared = {name: {**figures[name], "us_per_1000": spent[name], "funnel_ms": whole[name]} for name in whole}
    frontier = [{**point, "us_per_1000": spent[str(n)]} for n, point in enumerate(figures["frontier"])]
    return {**figures, **compared, "frontier": frontier}


def fscd_scorer(loaded: LoadedBundle, network: Any, item_side: str) -> FscdScorer:
    split = FscdSplit(network, network.kept_fields)
    stored = item_part(split, loaded.items) if item_side == "precomputed" else None
    return FscdScorer(loaded, split, stored, loaded.prerank_calibration)


def _digest(config: Config, out: Artifacts, costs: Path | None, seed: int) -> str:
    trained = summary.read(out.out / "models")
    parts = [config.prerank.model_dump_json(), config.retrieve.model_dump_json(), config.rerank.model_dump_json(),
             trained.get("ranker"), [summary.read(out.model(name)).get("digest") for name in
                                     ("two_tower", str(trained.get("ranker")))],
             bundle.digest(costs) if costs else None, seed]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _track(config: Config, out: Artifacts, found: dict[str, Any]) -> None:
    with Tracker(out.out, config.name) as tracker:
        run = tracker.start("prerank", {"prerank": config.prerank.model_dump(mode="json"), "kept": found["kept"]})
        for step, point in enumerate(found["frontier"]):
            run.metrics({key: point[key] for key in TRACKED}, step)
        if prerank_plot.available():
            out.prerank.mkdir(parents=True, exist_ok=True)
            prerank_plot.write(out.prerank / PICTURE, found)
            run.artifact(out.prerank / PICTURE)
        run.artifact(out.model("fscd") / WEIGHTS)


