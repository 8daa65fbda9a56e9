"""The steps of a run, each alone, restartable, and with a summary beside its output."""

from __future__ import annotations

import importlib.util
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import DataError
from sluice.run.emptied_folder import emptied
from sluice.run.progress import step
from sluice.run.skipped import skipped

if TYPE_CHECKING:  # the registry is asked by training alone
    from sluice.release.warm_parent import Warmth

NO_TORCH = "this machine has no torch, with which the examples are read; install sluice[models] to have it"


def features(
    config: Config, data: Path | None, out: Artifacts, console: Console, day: str | None = None,
    until: str | None = None,
) -> dict[str, Any]:
    from pipelines.jobs import feature_job as feature_step

    with step(console, "features") as progress:
        found = feature_step.run(config, data, out, day=day, on_progress=progress.note, until=until)
    return found if day else {**found, "leaks": leaks(config, out, console)}


def leaks(config: Config, out: Artifacts, console: Console) -> dict[str, Any]:
    """Which fields may know the label; a warning each, and no more: the run goes on with them."""
    from sluice.report.tables import print_leaks

    if importlib.util.find_spec("torch") is None:
        found: dict[str, Any] = {"skipped": NO_TORCH, "suspected": {}, "fields": {}}
    else:
        from models.leakage import leak_check

        with step(console, "leak check"):
            found = leak_check.run(config, out)
    print_leaks(found, console)
    return found


def crosses(
    config: Config, out: Artifacts, console: Console, seed: int | None = None, force: bool = False
) -> dict[str, Any]:
    """Searches cross features, then encodes the examples with them unless they already hold them."""
    _need(out.encoding, "sluice features")
    from models.cross_search import job as cross_step
    from pipelines.jobs import feature_job as feature_step

    with step(console, "crosses") as progress:
        found = cross_step.run(config, out, seed=seed, on_progress=progress.advance, force=force)
    if not feature_step.has_found_crosses(config, out):
        with step(console, "features with crosses") as progress:
            feature_step.encode_again(config, out, on_progress=progress.note)
    return found


def pretrain(config: Config, out: Artifacts, console: Console, seed: int | None = None) -> dict[str, Any]:
    """Pair statistics from the statistics window: graph ▶ vectors and heads ▶ named in the feature spec."""
    _need(out.encoding, "sluice features")
    from models.pair_rates import job as pretrain_step
    from pipelines.jobs import pair_job as pair_step

    with step(console, "pretrain") as progress:
        progress.note("graph")
        graph = pair_step.run(config, out)
        return pretrain_step.run(config, out, graph, seed=seed, on_progress=progress.advance)


def train(
    config: Config, out: Artifacts, console: Console, seed: int | None = None, warmth: Warmth | None = None
) -> dict[str, Any]:
    """`warmth` None starts from nothing."""
    _need(out.encoding, "sluice features")
    from models.jobs import train_job as train_step
    from models.training.warm_start import Parent
    from sluice.release.warm_parent import parent_of

    folder = parent_of(config, out, warmth) if warmth else None
    with step(console, "train") as progress:
        return train_step.run(config, out, seed=seed, on_progress=progress.advance,
                              parent=Parent.read(folder) if folder else None)


def prerank(
    config: Config, out: Artifacts, console: Console, costs: Path | None = None, seed: int | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Chooses the pre-ranker's fields; `costs` is a file of `sluice measure-costs`, None the configured costs."""
    _need(out.out / "models", "sluice train")
    from sluice.run import prerank as prerank_step

    with step(console, "prerank") as progress:
        return prerank_step.run(config, out, costs, seed, progress.advance, force)


def build_bundle(config: Config, parts: Artifacts, console: Console, out: Artifacts | None = None) -> dict[str, Any]:
    """Assembles `parts` beside, publishes in one rename below `out` (None: where the parts are), writes the summary."""
    _need(parts.out / "models", "sluice train")
    out = out or parts
    from serving.assembly.assemble import assemble

    started = time.perf_counter()
    with step(console, "bundle"), emptied(out.out / ".build") as build:
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
    summary.write(out.out / "bundle_step", result)
    return result


def federate(
    config: Config, data: Path | None, out: Artifacts, console: Console, until: str | None = None
) -> dict[str, Any]:
    """Users of the log as clients: features ▶ rounds of every setting ▶ a bundle of the served one."""
    from federated.jobs import federate_job as federate_step

    if not out.encoding.exists():
        features(config, data, out, console, until=until)
    with step(console, "federate") as progress:
        found = federate_step.run(config, out, progress.advance)
    parts = Artifacts(out.out / federate_step.FOLDER / "parts")
    found["bundle"] = build_bundle(federate_step.served_config(config), parts, console, out)
    summary.write(out.out, {"name": config.name, **found})
    return found


def _track_bundle(config: Config, out: Artifacts, manifest: bundle.Manifest) -> None:
    """One tracked run that holds the bundle itself, its spec and what it was made with."""
    from models.tracking.tracking import Tracker

    settings = {"version": manifest.version, "content_hash": manifest.content_hash, **config.model_dump(mode="json")}
    with Tracker(out.out, config.name) as tracker:
        run = tracker.start("bundle", settings)
        run.metrics({f"{model}.auc": figures.get("auc") for model, figures in manifest.metrics["models"].items()})
        run.artifact(out.bundle)


def run(
    config: Config, data: Path | None, out: Artifacts, console: Console, seed: int | None = None,
    warmth: Warmth | None = None,
) -> dict[str, Any]:
    """Logs to bundle: features ▶ crosses ▶ features with crosses ▶ pretrain ▶ train ▶ prerank ▶ bundle."""
    started = time.perf_counter()
    merged: dict[str, Any] = {"name": config.name, "features": features(config, data, out, console)}
    merged["leaks"] = merged["features"].pop("leaks")
    if config.crosses.budget:
        merged["crosses"] = crosses(config, out, console, seed)
        merged["features"] = summary.read(out.features)
    merged["pretrain"] = pretrain(config, out, console, seed)
    trained = train(config, out, console, seed, warmth)
    merged |= {"models": trained["models"], "ranker": trained["ranker"], "train": trained}
    if config.prerank_kind == "fscd":
        merged["prerank"] = prerank(config, out, console, seed=seed)
    merged["bundle"] = build_bundle(config, out, console)
    merged["skipped"] = skipped(config)
    merged["seconds"] = round(time.perf_counter() - started, 1)
    summary.write(out.out, merged)
    return merged


MARK = ".sluice-demo"


def clear(out: Path) -> None:
    """Removes an earlier demo's output. Refuses a folder with anything in it that no demo has marked as its own."""
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise DataError(f"{out} is not empty and no demo made it; give another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()


def _need(folder: Path, command: str) -> None:
    if not folder.exists():
        raise DataError(f"{folder} is missing; run `{command}` with the same --out first")


def _final_metrics(trained: dict[str, Any]) -> dict[str, Any]:
    keep = ("auc", "gauc", "log_loss", "ece", "predicted_over_observed")
    return {name: {k: figures[k] for k in keep if k in figures} for name, figures in trained.get("models", {}).items()}
