"""The demo's run up to its models in two processes, so that neither waits for the other.

    here     features ▶ search for crosses ▶ features with crosses ▶ models ▶ ...
    beside   imports ▶ pair rates, federated rounds, rivals of the crosses ▶ models ▶ comparison, pair rates' rivals

What is made beside is what one process would make. Files of examples are written again when nobody reads them.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.pair_graph import GraphManifest
from contracts.summaries import summary
from contracts.summaries.demo import PairRateEvaluation
from contracts.summaries.features import FeaturesSummary
from contracts.summaries.federated import FederateSummary
from contracts.summaries.pair_rates import PairRatesSummary
from contracts.summaries.run import RunSummary
from sluice.run import jobs
from sluice.run.progress import show_progress
from sluice.run.side_lane import SideLane

# What jobs import when they first need it, in the order of the jobs; of a new installation it is compiled then.
LATER = ("torch._dynamo", "models.pair_rates.job", "models.cross_search.job", "lightgbm",
         "federated.jobs.federate_job", "models.jobs.ahead", "matplotlib.backends.backend_agg",
         "sluice.demo.evaluate_pair_rates", "sluice.demo.evaluate_prerank")


class Beyond(NamedTuple):
    """What the demo shows beside the run, made by the other process; None where it is not wanted."""

    rounds: Future[FederateSummary] | None = None
    pair_rates: Future[PairRateEvaluation | None] | None = None

    def of_run(self, run: RunSummary) -> RunSummary:
        """The run with both, once they are there."""
        if self.rounds is None or self.pair_rates is None:
            return run
        rounds = self.rounds.result()
        return run.model_copy(update={"pair_rates": self.pair_rates.result(), "federated": rounds.federated,
                                      "settings": rounds.settings})


def get_ready(config: Config, out: Artifacts) -> None:
    """What jobs do when they first need it, by a process that has nothing else to do yet: kernels are compiled,
    tracking's data base is made, LATER is imported. What cannot be imported is told by whoever needs it."""
    from models.compiled import kernels
    from models.tracking.tracking import Tracker

    kernels.library()
    with Tracker(out.out, config.name) as tracker:
        tracker.write(lambda store: None)
    for name in LATER:
        with suppress(Exception):
            import_module(name)


def run_to_models(
    config: Config, out: Artifacts, console: Console, lane: SideLane, beyond: bool
) -> tuple[RunSummary, Beyond]:
    """As of `jobs`, but for the figures of the crosses' comparison, which come into OUT/crosses/summary.json later;
    with all that is `beyond` a run where that is wanted."""
    from models.cross_search import job as cross_job
    from models.jobs.pair_rate_choice import choose_pair_rates

    features, leaks = jobs.run_features(config, out.raw, out, console)
    pretrained = _pretrain(config, out, console, lane)
    rounds = lane.submit(federated_rounds, config, out) if beyond else None
    searched = comparison = None
    if config.crosses.budget:
        searched, comparison = jobs.search_crosses(
            config, out, console, lane=lane, reading=[piece for piece in (pretrained, rounds) if piece])
        features = summary.required(out.features, FeaturesSummary, "sluice features")
    elif rounds is not None:
        rounds.result()  # which read the feature spec
    pretrain = choose_pair_rates(config, out, pretrained.result())
    later: list[Future[PairRateEvaluation | None]] = []

    def then() -> None:
        if comparison is not None:
            lane.submit(cross_job.compare, comparison)
        if beyond:
            later.append(lane.submit(pair_rates, config, out))

    trained = jobs.run_train(config, out, console, lane=lane, then=then)
    run = RunSummary(
        name=config.name, features=features, leaks=leaks, crosses=searched, pretrain=pretrain,
        models=trained.models, ranker=trained.ranker, train=trained)
    return run, Beyond(rounds, *later)


def _pretrain(config: Config, out: Artifacts, console: Console, lane: SideLane) -> Future[PairRatesSummary]:
    """The graph here, where the engine is; all else beside, but for the feature spec, which is about to change."""
    from pipelines.jobs import pair_job

    with show_progress(console, "graph of pairs"):
        graph = pair_job.write_pair_graph(config, out)
    return lane.submit(fit_pair_rates, config, out, graph)


def fit_pair_rates(config: Config, out: Artifacts, graph: GraphManifest | None) -> PairRatesSummary:
    """As the run would, before it chooses whether they are read."""
    from models.pair_rates import job as pretrain_job

    return pretrain_job.pretrain(config, out, graph, seed=config.seed)


def pair_rates(config: Config, out: Artifacts) -> PairRateEvaluation | None:
    """Pair rates and their baselines, against the truth."""
    from sluice.demo.evaluate_pair_rates import evaluate_pair_rates

    return evaluate_pair_rates(config, out)


def federated_rounds(config: Config, out: Artifacts) -> FederateSummary:
    """A few secure rounds over some users of the log, with their figures; what is served stays as it is."""
    from federated.jobs import federate_job

    return federate_job.federate(config, out, lambda what, done, total: None, bundle=False)
