"""`sluice demo`: a simulated marketplace through every layer, up to answers of a live server and a report."""

from __future__ import annotations

import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console

from contracts import summary as untyped_summary
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.errors import ConfigError, SluiceError
from contracts.summaries import summary
from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.train import TrainSummary
from sluice.demo import demo_folder
from sluice.demo.server_process import ServerProcess
from sluice.report.tables import print_models, print_pairs
from sluice.run import jobs
from sluice.run.progress import show_progress

VISITS = 400
CROSSES = ("planted", "found", "precision", "recall", "seconds", "share_of_oracle")
SHOWN = ("slate", "pair_rates", "serving", "parity", "federated", "seconds", "marketplace_version")


def demo_config(events: int | None) -> Config:
    """examples/marketplace.toml, with another number of events where asked for."""
    config = load(Path(str(files("sluice"))).parent / "examples" / "marketplace.toml")
    if config.simulation is None:
        raise ConfigError("examples/marketplace.toml has no [simulation] section")
    if events is not None:
        config = config.model_copy(update={"simulation": config.simulation.model_copy(update={"events": events})})
    return config


def run_demo(folder: Path, events: int | None, keep_serving: bool, console: Console) -> dict[str, Any]:
    """Returns what it writes to FOLDER/summary.json, whatever it found. An earlier demo in the folder gives way."""
    started = time.perf_counter()
    config, out = demo_config(events), Artifacts(folder)
    demo_folder.clear(folder)
    simulated = _simulate(config, out, console)
    result = jobs.run_all(config, out.raw, out, console)
    server = ServerProcess(out.bundle, folder / "server.log", port=50051 if keep_serving else 0)
    try:
        with show_progress(console, "requests and slates"):
            evaluated = _evaluate(config, out, server.target)
        with show_progress(console, "pair rates and their baselines"):
            from sluice.demo.evaluate_pair_rates import evaluate_pair_rates

            pair_rates = evaluate_pair_rates(config, out)
        evaluated |= {"pair_rates": pair_rates.plain()} if pair_rates else {}
        evaluated |= _federated(config, out, console)
    finally:
        if not keep_serving:
            server.stop()
    merged = {
        **result,
        "simulation": simulated,
        **evaluated,
        "marketplace_version": config.version,
        "parity": result["bundle"]["parity"],
    }
    merged["seconds"] = round(time.perf_counter() - started, 1)
    untyped_summary.write(folder, merged)
    _finish(folder, merged, server if keep_serving else None, console)
    return merged


def _evaluate(config: Config, out: Artifacts, target: str) -> dict[str, Any]:
    """The models, crosses and pre-ranker of the run, and the slates of its server, against the truth."""
    from pipelines.marketplace.truth import CONTEXT, Truth
    from sluice.demo import live_requests, oracle
    from sluice.demo.evaluate_crosses import evaluate_crosses
    from sluice.demo.evaluate_prerank import decoys_kept, evaluate_prerank
    from sluice.demo.evaluate_slates import evaluate_slates, serve_visits

    truth = Truth.load(out.truth)
    found = serve_visits(config, out, truth, target, VISITS)
    best = oracle.oracle_auc(truth, oracle.window_rows(out, CONTEXT))
    evaluated: dict[str, Any] = {
        "models": {
            name: figures.plain() | {"oracle_auc": best, "share_of_oracle": oracle.share_of_oracle(figures.auc, best)}
            for name, figures in summary.required(out.out / "models", TrainSummary, "sluice train").models.items()
        },
        "slate": evaluate_slates(found, config).plain(),
        "serving": live_requests.figures(list(found.served.values())).plain(),
    }
    searched, chosen = summary.read(out.crosses, CrossesSummary), summary.read(out.prerank, PrerankSummary)
    if searched:
        parts = [cross.parts for cross in searched.crosses]
        aucs = {variant: figures.auc for variant, figures in (searched.variants or {}).items()}
        evaluated["crosses"] = searched.plain() | evaluate_crosses(parts, aucs, truth, best).plain()
    if chosen:
        evaluated["prerank"] = chosen.plain() | {
            "decoys_kept": decoys_kept(chosen.kept), "slates": evaluate_prerank(found, out).plain()}
    return evaluated


def require_sound(found: dict[str, Any]) -> None:
    """Raises SluiceError on a demo whose server failed requests or whose bundle computes other scores than training."""
    errors, requests = found["serving"]["errors"], found["serving"]["requests"]
    mismatches, rows = found["parity"]["mismatches"], found["parity"]["rows"]
    if errors or mismatches:
        raise SluiceError(
            f"the demo failed: {errors} of {requests} requests were not answered and {mismatches} of {rows} parity "
            "rows differ, where none may; see serving and parity in its summary.json, and its server.log"
        )


def _simulate(config: Config, out: Artifacts, console: Console) -> dict[str, Any]:
    from pipelines.marketplace.marketplace import simulate

    assert config.simulation is not None
    with show_progress(console, "simulate"):
        return simulate(config.simulation, config.seed, out.raw, out.truth).plain()


def _federated(config: Config, out: Artifacts, console: Console) -> dict[str, Any]:
    """A few secure rounds over some users of the log, with their figures; what is served stays as it is."""
    from federated.jobs import federate_job

    with show_progress(console, "federated rounds") as progress:
        made = federate_job.federate(config, out, progress.advance, bundle=False).plain()
    return {"federated": made["federated"], "settings": made["settings"]}


def _finish(folder: Path, merged: dict[str, Any], server: ServerProcess | None, console: Console) -> None:
    from sluice.report.report import write_report

    with show_progress(console, "report"):
        page = write_report(folder)
    print_models(merged["models"], console)
    crosses = {key: merged["crosses"][key] for key in CROSSES}
    print_pairs(
        "demo", {"crosses": crosses, **{key: merged[key] for key in SHOWN if key in merged}}, console
    )
    console.print(f"report: {page}", highlight=False)
    if server is not None:
        console.print(
            f"serving on {server.target}, process {server.process.pid}: kill {server.process.pid} stops it; "
            f"try: sluice rank --user u_00017 --target {server.target}",
            highlight=False,
        )
