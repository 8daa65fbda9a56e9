"""The job `sluice bundle`: the parts that a run has trained -> one published folder, tracked."""

from __future__ import annotations

import time

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.progress import report
from contracts.summaries import summary as summaries
from contracts.summaries.bundle import BundleSummary, ModelMetrics
from contracts.summaries.summary import required
from contracts.summaries.train import TrainSummary
from sluice.run.emptied_folder import emptied
from sluice.run.needed_folder import need
from sluice.run.progress import show_progress

BUNDLE_JOB = "bundle_job"  # the folder of the summary, beside the bundle, which is published whole


def build_bundle(config: Config, parts: Artifacts, console: Console, out: Artifacts | None = None) -> BundleSummary:
    """Assembles `parts` beside, publishes in one rename below `out` (None: where the parts are), writes the summary."""
    need(parts.out / "models", "sluice train")
    out = out or parts
    from serving.assembly.assemble import assemble
    from serving.replay.reference import write_reference

    started = time.perf_counter()
    with show_progress(console, "bundle"), emptied(out.out / ".build") as build:
        metrics = assemble(config, parts, build)
        grown = write_reference(config, parts, build)
        trained = required(parts.out / "models", TrainSummary, "sluice train")
        report("published")
        manifest = bundle.publish(
            build,
            out.bundle,
            config.name,
            parents=(trained.parent,) if trained.parent else (),
            settings=config,
            metrics=metrics.model_copy(update={"models": _final_metrics(trained)}),
        )
        report("tracked")
        _track_bundle(config, out, manifest)
    result = BundleSummary(
        version=manifest.version, files=len(manifest.files), ranker=metrics.ranker, parity=metrics.parity,
        users=metrics.users, items=metrics.items, index=metrics.index, channels=metrics.channels,
        grown=grown or None,
        bytes=sum(p.stat().st_size for p in out.bundle.rglob("*") if p.is_file()),
        seconds=round(time.perf_counter() - started, 2),
    )
    summaries.write(out.out / BUNDLE_JOB, result)
    return result


def _track_bundle(config: Config, out: Artifacts, manifest: bundle.Manifest) -> None:
    """One tracked run that holds the bundle itself, its spec and what it was made with."""
    from models.tracking.tracking import Tracker

    settings = {"version": manifest.version, "content_hash": manifest.content_hash, **config.model_dump(mode="json")}
    with Tracker(out.out, config.name) as tracker:
        run = tracker.start("bundle", settings)
        models = manifest.metrics.models if manifest.metrics else {}
        run.metrics({f"{model}.auc": figures.auc for model, figures in models.items()})
        run.artifact(out.bundle)


def _final_metrics(trained: TrainSummary) -> dict[str, ModelMetrics]:
    return {name: ModelMetrics(**{key: getattr(figures, key) for key in ModelMetrics.model_fields})
            for name, figures in trained.models.items()}
