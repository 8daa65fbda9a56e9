"""`sluice demo`: a simulated marketplace through every layer, up to answers of a live server and a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.errors import ConfigError, SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries import summary
from contracts.summaries.bundle import ParityFigures
from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.demo import ServingFigures
from contracts.summaries.marketplace import SimulatedLog
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.run import EvaluatedCrosses, EvaluatedPrerank, EvaluatedRanker, RunSummary
from sluice.demo import demo_folder, in_two_processes
from sluice.demo.quick import VISITS as QUICK_VISITS
from sluice.demo.quick import shortened
from sluice.demo.server_process import ServerProcess
from sluice.report.tables import print_models, print_pairs
from sluice.run import jobs
from sluice.run.progress import show_progress
from sluice.run.side_lane import SideLane

if TYPE_CHECKING:
    import numpy as np

    from pipelines.marketplace.truth import Truth
    from sluice.demo.evaluate_slates import ServedVisits

VISITS = 400
ALONE = ("--workers", "1")  # of a server that one caller asks, one request after the other
STANDARD = "standard"
PRESETS = {STANDARD: "marketplace.toml", "tastes": "marketplace_tastes.toml"}
CROSSES = ("planted", "found", "precision", "recall", "seconds", "share_of_oracle")
SHOWN = ("slate", "pair_rates", "serving", "parity", "federated", "seconds", "marketplace_version")


def demo_config(events: int | None, quick: bool = False, preset: str = STANDARD) -> Config:
    """The preset's file among the examples, `quick` shortened, with another number of events where asked for."""
    file = PRESETS[preset]
    config = load(Path(str(files("sluice"))).parent / "examples" / file)
    if config.simulation is None:
        raise ConfigError(f"examples/{file} has no [simulation] section")
    if quick:
        config = shortened(config)
    if events is not None:
        simulation = config.simulation
        config = config.model_copy(update={"simulation": simulation and simulation.model_copy(
            update={"events": events})})
    return config


def run_demo(
    folder: Path, events: int | None, keep_serving: bool, console: Console, quick: bool = False,
    preset: str = STANDARD,
) -> RunSummary:
    """Returns what it writes to FOLDER/summary.json, whatever it found. An earlier demo in the folder gives way.

    `quick`: without federated rounds and the baselines of pair rates, as are presets but the standard one, and all else
    smaller.
    """
    started = time.perf_counter()
    config, out = demo_config(events, quick, preset), Artifacts(folder)
    demo_folder.clear(folder)
    with SideLane() as lane:
        lane.submit(in_two_processes.get_ready, config, out)
        simulated = _simulate(config, out, console)
        run, beyond = in_two_processes.run_to_models(
            config, out, console, lane, beyond=preset == STANDARD and not quick)
        run = jobs.run_to_bundle(config, out, console, run)
        server = ServerProcess(out.bundle, folder / "server.log", port=50051 if keep_serving else 0,
                               options=() if keep_serving else ALONE, ends_with_us=not keep_serving, wait=False)
        try:
            with show_progress(console, "requests and slates"):
                run = _evaluated(run, config, out, server, QUICK_VISITS if quick else VISITS, lane)
            with show_progress(console, "the end of what was left to the process beside"):
                lane.wait()
        except BaseException:  # nobody would be told which process serves on
            server.stop()
            raise
        if not keep_serving:
            server.stop()
    run = _with_crosses(run, config, out)
    run = beyond.of_run(run).model_copy(update={
        "simulation": simulated, "marketplace_version": config.version,
        "parity": run.bundle.parity if run.bundle else None,
        "seconds": round(time.perf_counter() - started, 1),
    })
    summary.write(folder, run)
    _finish(folder, run, server if keep_serving else None, console)
    return run


def _evaluated(
    run: RunSummary, config: Config, out: Artifacts, server: ServerProcess, count: int, lane: SideLane
) -> RunSummary:
    """The models and pre-ranker of the run, and the slates of its server, against the truth."""
    from sluice.demo import live_requests, oracle
    from sluice.demo.evaluate_prerank import DEAREST_FIRST, slates_behind
    from sluice.demo.evaluate_slates import evaluate_slates, serve_visits

    truth, length = oracle.truth_of_test(config, out), config.serve.default_limit
    asked = live_requests.sample_visits(out, FeatureSpec.read(out.encoding), count, config.seed)
    beside = {kind: lane.submit(slates_behind, kind, asked, length, out) for kind in DEAREST_FIRST if run.prerank}
    visits = serve_visits(config, out, truth, server, asked)
    best = oracle.best_auc(truth, out)
    models = {
        name: EvaluatedRanker(
            **dict(figures), oracle_auc=best, share_of_oracle=oracle.share_of_oracle(figures.auc, best))
        for name, figures in (run.models or {}).items()
    }
    return run.model_copy(update={
        "models": models,
        "slate": evaluate_slates(visits, config),
        "serving": live_requests.figures(list(visits.served.values())),
        "prerank": run.prerank and _evaluated_prerank(run.prerank, visits, beside, out),
    })


def _with_crosses(run: RunSummary, config: Config, out: Artifacts) -> RunSummary:
    """With what the process beside found the crosses to be worth, against the truth."""
    from sluice.demo import oracle

    searched, truth = summary.read(out.crosses, CrossesSummary), oracle.truth_of_test(config, out)
    evaluated = searched and _evaluated_crosses(searched, truth, oracle.best_auc(truth, out))
    return run.model_copy(update={"crosses": evaluated})


def _evaluated_crosses(searched: CrossesSummary, truth: Truth, best: float) -> EvaluatedCrosses:
    from sluice.demo.evaluate_crosses import evaluate_crosses

    aucs = {variant: figures.auc for variant, figures in (searched.variants or {}).items()}
    evaluation = evaluate_crosses([cross.parts for cross in searched.crosses], aucs, truth, best)
    return EvaluatedCrosses(**dict(searched), **dict(evaluation))


def _evaluated_prerank(
    chosen: PrerankSummary, visits: ServedVisits, beside: Mapping[str, Future[list[np.ndarray]]], out: Artifacts
) -> EvaluatedPrerank:
    """`beside`: the slates that the other process makes by kind, of which those are made here that it has not begun."""
    from sluice.demo.evaluate_prerank import decoys_kept, evaluate_prerank, slates_behind

    length = visits.markets[0].length
    found = {kind: slates_behind(kind, visits.visits, length, out) if piece.cancel() else piece.result()
             for kind, piece in reversed([*beside.items()])}
    return EvaluatedPrerank(
        **dict(chosen), decoys_kept=decoys_kept(chosen.kept), slates=evaluate_prerank(found, visits.markets))


def require_sound(serving: ServingFigures | None, parity: ParityFigures | None) -> None:
    """Raises SluiceError on a demo whose server failed requests or whose bundle computes other scores than training."""
    if serving is None or parity is None:
        raise SluiceError("the demo failed: no requests were sent, or no bundle was made")
    if serving.errors or parity.mismatches:
        raise SluiceError(
            f"the demo failed: {serving.errors} of {serving.requests} requests were not answered and "
            f"{parity.mismatches} of {parity.rows} parity rows differ, where none may; see serving and parity in its "
            "summary.json, and its server.log"
        )


def _simulate(config: Config, out: Artifacts, console: Console) -> SimulatedLog:
    from pipelines.marketplace.marketplace import simulate

    assert config.simulation is not None
    with show_progress(console, "simulate"):
        return simulate(config.simulation, config.seed, out.raw, out.truth)


def _finish(folder: Path, run: RunSummary, server: ServerProcess | None, console: Console) -> None:
    from sluice.report.report import write_report

    with show_progress(console, "report"):
        page = write_report(folder)
    print_models(run.models or {}, console)
    crosses = run.crosses.model_dump(mode="json", include=set(CROSSES)) if run.crosses else {}
    shown = run.model_dump(mode="json", include=set(SHOWN), exclude_none=True)
    print_pairs("demo", {"crosses": crosses, **{key: shown[key] for key in SHOWN if key in shown}}, console)
    for line in look_next(folder, page):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if server is not None:
        console.print(
            f"serving on {server.target}, process {server.process.pid}: kill {server.process.pid} stops it; "
            f"try: sluice rank --user u_00017 --target {server.target}",
            highlight=False,
        )


def look_next(folder: Path, page: Path) -> tuple[str, str, str]:
    """What is worth a look after the demo."""
    return (
        f"1. {page}: models beside the oracle, crosses found, what each stage of the funnel loses, in plots",
        f"2. sluice serve {folder / 'bundle'} --port 50051, then sluice rank --user u_00017 --context device=phone "
        "--limit 5: an answer with prices and reasons",
        "3. sluice init YOUR.csv, then sluice run YOUR.toml: the same from a log of your own",
    )
