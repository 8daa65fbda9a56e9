"""The torch half of `sluice pretrain`: graph -> vectors and heads -> pair rates.

    OUT/pair_rates/weights.safetensors, summary.json, checkpoints/ until both are there

Whether the feature spec names them is another matter (models/jobs/pair_rate_choice.py).

Restartable: a killed run goes on from its last checkpoint, a finished one is kept, where settings, graph and seed are
the same.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time

import torch

from contracts.artifacts import WEIGHTS, Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.config.training import PairRates
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import GraphManifest
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.pair_rates import GraphFigures, PairRatesSummary, PretrainEpoch, PretrainFigures
from models.distributed.data_parallel import resolve_device
from models.distributed.run_checkpoint import CHECKPOINTS, RunCheckpoint, named, short
from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining as pair_pretraining
from models.pair_rates import weights as pair_weights
from models.pair_rates.buckets import memory
from models.pair_rates.edge_batches import SCHEME
from models.pair_rates.graph import PairGraph
from models.pair_rates.strength import strengths
from models.tracking.tracking import TrackedRun, Tracker


def pretrain(
    config: Config, out: Artifacts, manifest: GraphManifest | None, *, seed: int | None = None,
    on_progress: OnProgress | None = None,
) -> PairRatesSummary:
    """Writes OUT/pair_rates/summary.json, which it also returns. `manifest` is the graph's, None without pairs.

    `on_progress(what, batches done, batches in all)`. Examples may be written again meanwhile. Raises what reading and
    fitting raise.
    """
    begin = time.perf_counter()
    if manifest is None:
        found = PairRatesSummary(pairs=(), model="none", seconds=0.0)
    else:
        found = _pretrain(config, out, manifest, config.seed if seed is None else seed, on_progress)
    found = found.model_copy(update={"seconds": round(time.perf_counter() - begin, 3)})
    summary.write(out.pair_rates, found)
    shutil.rmtree(out.pair_rates / CHECKPOINTS, ignore_errors=True)
    return found


def _pretrain(
    config: Config, out: Artifacts, manifest: GraphManifest, seed: int, on_progress: OnProgress | None,
) -> PairRatesSummary:
    graph, settings, spec = PairGraph.read(out.pair_rates), config.pair_rates, FeatureSpec.read(out.encoding)
    digest, pairs = _digest(settings, manifest, seed), pair_weights.pairs_of(graph)
    known = _kept(out, digest)
    if known is not None:
        return known
    (out.pair_rates / summary.FILE).unlink(missing_ok=True)
    with Tracker(out.out, config.name) as tracker:
        chosen = {"seed": seed, "pair_rates": settings.model_dump(mode="json")}
        run = tracker.start(f"pretrain {settings.model}", chosen)
        kept = _kept_run(config, out, manifest, seed)
        made, figures = fit(graph, spec, config, seed, kept, run, on_progress)
        named = pair_weights.publish(made, spec, pairs, settings, out.pair_rates)
        sizes = memory(made, graph)
        run.metrics({**dict(sizes), "best_validation_loss": figures.validation_loss}, len(figures.history))
        run.artifact(out.pair_rates / WEIGHTS)
    return PairRatesSummary(
        pairs=tuple(pairs), model=settings.model, graph=_described(manifest, graph), bytes=sizes, **dict(figures),
        digest=digest, pair_model=named.pair_model, seconds=0.0,
    )


def _kept(out: Artifacts, digest: str) -> PairRatesSummary | None:
    """The summary of an equal run before, whose weights are still the ones that it left."""
    known, weights = summary.kept(out.pair_rates, PairRatesSummary), out.pair_rates / WEIGHTS
    if known is None or known.digest != digest or known.pair_model is None or not weights.exists():
        return None
    return known if bundle.digest(weights) == known.pair_model.digest else None


def _kept_run(config: Config, out: Artifacts, manifest: GraphManifest, seed: int) -> RunCheckpoint | None:
    """The checkpoint of pre-training, every `train.checkpoint_minutes`; None where none are wanted. One of another run
    is nobody's, and gives way."""
    minutes = config.train.checkpoint_minutes
    identity = {"seed": str(seed), "batches": str(SCHEME), "graph": short(manifest.plain()),
                **named("pair_rates", config.pair_rates)}
    kept = RunCheckpoint(out.pair_rates / CHECKPOINTS, 60.0 * minutes, identity, command="sluice pretrain")
    kept.resume = kept.fits()
    return kept if minutes else None


def fit(
    graph: PairGraph, spec: FeatureSpec, config: Config, seed: int, kept: RunCheckpoint | None,
    run: TrackedRun | None, on_progress: OnProgress | None,
) -> tuple[PairRateFeatures, PretrainFigures]:
    """The pair rates of `pair_rates.model` and the figures of their training; a table needs none."""
    settings = config.pair_rates
    if settings.model == "table":
        return pair_weights.table(graph, spec, settings), PretrainFigures()
    torch.manual_seed(seed)
    network = pair_network.build(settings, graph)
    epoch = 0

    def on_epoch(entry: PretrainEpoch) -> None:
        nonlocal epoch
        epoch = entry.epoch
        if run:
            run.metrics(entry.model_dump(exclude={"epoch"}), epoch)

    def on_batch(done: int, batches: int) -> None:
        if on_progress:
            on_progress(settings.model, epoch * batches + done, settings.epochs * batches)

    fitted = pair_pretraining.fit(
        network, graph, settings, seed, kept=kept, on_epoch=on_epoch, on_batch=on_batch,
        device=resolve_device(config.train.device),
    )
    figures = PretrainFigures(
        history=fitted.history, best_epoch=fitted.best_epoch, edges_per_second=fitted.edges_per_second,
        resumed_epochs=fitted.resumed, validation_loss=min(entry.validation_loss for entry in fitted.history),
    )
    strength = strengths(network, graph, seed) if settings.model == "posterior" else None
    return pair_weights.from_network(network, graph, spec, strength), figures


def _digest(settings: PairRates, manifest: GraphManifest, seed: int) -> str:
    """Changes with whatever the weights depend on."""
    parts = [settings.model_dump(mode="json"), manifest.plain(), seed, SCHEME]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _described(manifest: GraphManifest, graph: PairGraph) -> GraphFigures:
    return GraphFigures(
        nodes=graph.nodes, edges=len(graph.edges.relation), pairs_observed=len(graph.targets),
        relations=manifest.relations, rows=manifest.rows, clicks=manifest.clicks,
    )
