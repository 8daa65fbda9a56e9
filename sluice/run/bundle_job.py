"""The job `sluice bundle`: the parts that a run has trained -> one published folder, tracked."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from sluice.run.emptied_folder import emptied
from sluice.run.needed_folder import need
from sluice.run.progress import show_progress

BUNDLE_JOB = "bundle_job"  # the folder of the summary, beside the bundle, which is published whole


def build_bundle(config: Config, parts: Artifacts, console: Console, out: Artifacts | None = None) -> dict[str, Any]:
    """Assembles `parts` beside, publishes in one rename below `out` (None: where the parts are), writes the summary."""
    need(parts.out / "models", "sluice train")
    out = out or parts
    from serving.assembly.assemble import assemble

    started = time.perf_counter()
    with show_progress(console, "bundle"), emptied(out.out / ".build") as build:
        metrics = assemble(config, parts, build)
        trained = summary.read(parts.out / "models")
        manifest = bundle.publish(
            build,
            out.bundle,
            config.name,
            parents=(trained["parent"],) if trained.get("parent") else (),
            settings=config.model_dump(mode="json"),
            metrics={**metrics, "models": _final_metrics(trained)},
        )
        _track_bundle(config, out, manifest)
    result = {
        "version": manifest.version,
        "files": len(manifest.files),
        **metrics,
        "bytes": sum(p.stat().st_size for p in out.bundle.rglob("*") if p.is_file()),
        "seconds": round(time.perf_counter() - started, 2),
    }
    summary.write(out.out / BUNDLE_JOB, result)
    return result


def _track_bundle(config: Config, out: Artifacts, manifest: bundle.Manifest) -> None:
    """One tracked run that holds the bundle itself, its spec and what it was made with."""
    from models.tracking.tracking import Tracker

    settings = {"version": manifest.version, "content_hash": manifest.content_hash, **config.model_dump(mode="json")}
    with Tracker(out.out, config.name) as tracker:
        run = tracker.start("bundle", settings)
        run.metrics({f"{model}.auc": figures.get("auc") for model, figures in manifest.metrics["models"].items()})
        run.artifact(out.bundle)


def _final_metrics(trained: dict[str, Any]) -> dict[str, Any]:
    keep = ("auc", "gauc", "log_loss", "ece", "predicted_over_observed")
    return {name: {k: figures[k] for k in keep if k in figures} for name, figures in trained.get("models", {}).items()}
