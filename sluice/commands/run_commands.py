"""Commands from a log to a bundle, in the order of a run; the demo does them all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import (
    AsJson,
    BundlePath,
    Cold,
    ConfigPath,
    Data,
    Out,
    Registry,
    Seed,
    Until,
    Warm,
    app,
    console,
    reported,
    show,
)


@app.command()
@reported
def demo(
    out: Out = Path("out/demo"),
    events: Annotated[int | None, typer.Option(min=20_000, help="impressions to simulate")] = None,
    keep_serving: Annotated[bool, typer.Option(help="leave the server running")] = False,
    as_json: AsJson = False,
) -> None:
    """Everything on a simulated marketplace: log, features, models, bundle, live server, requests, report.

    Example: sluice demo --events 100000 --out out/small
    """
    from sluice.demo.demo import require_sound, run_demo

    found = run_demo(out, events, keep_serving, console())
    show(found, as_json)
    require_sound(found)


@app.command()
@reported
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a CSV or Parquet file; .gz is fine")],
    out: Annotated[Path | None, typer.Option(help="the configuration to write; NAME.toml here unless given")] = None,
    label: Annotated[str | None, typer.Option(help="its column, or Spark SQL true for positives")] = None,
    force: Annotated[bool, typer.Option(help="overwrite the configuration")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a table, guess roles, kinds, label and time, and write a commented configuration that runs.

    Example: sluice init data/ratings.csv --label "rating >= 4" --out ratings.toml
    """
    from sluice.commands.init_command import init as init_file

    show(init_file(file, out, label, force, console()), as_json)


@app.command()
@reported
def run(
    config: ConfigPath, out: Out, data: Data = None, seed: Seed = None, warm: Warm = None, cold: Cold = False,
    registry: Registry = None, as_json: AsJson = False,
) -> None:
    """Logs to bundle: features, crosses, pretrain, train, bundle. Training starts from the champion, if there is one.

    Example: sluice run examples/movielens_100k.toml --data data/ml-100k --out out/movielens
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.release.warm_parent import Warmth
    from sluice.report.tables import print_models
    from sluice.run import steps

    result = steps.run(load(config), data, Artifacts(out), console(), seed, Warmth(warm, cold, registry))
    print_models(result["models"], console())
    show(result, as_json)


@app.command()
@reported
def features(
    config: ConfigPath,
    out: Out,
    data: Data = None,
    day: Annotated[
        str | None, typer.Option(help="re-run exactly this day (YYYY-MM-DD), with the fitted encoding")
    ] = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Ingest, labels, point-in-time features, encoded examples, online tables.

    Example: sluice features examples/movielens_100k.toml --data data/ml-100k --out out/movielens
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.run import steps

    show(steps.features(load(config), data, Artifacts(out), console(), day, until), as_json)


@app.command()
@reported
def quality(
    config: ConfigPath,
    out: Out,
    day: Annotated[str | None, typer.Option(help="YYYY-MM-DD; the last one without it")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a day's features by limits learned from the days before; exit code 3 where they are passed.

    Example: sluice quality examples/marketplace.toml --out out/demo
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.run import quality as gate

    found = gate.run(load(config), Artifacts(out), console(), day)
    typer.echo(f"{found['day']}: {found['judged']} figures within their limits, learned from "
               f"{len(found['history'])} days")
    show(found, as_json)


@app.command()
@reported
def crosses(
    config: ConfigPath,
    out: Out,
    seed: Seed = None,
    force: Annotated[bool, typer.Option(help="search again where the same search has been done")] = False,
    as_json: AsJson = False,
) -> None:
    """Search cross features (FIVES), compare them with rivals, and encode the examples with them.

    Example: sluice crosses examples/movielens_100k.toml --out out/movielens
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.report.tables import print_crosses
    from sluice.run import steps

    result = steps.crosses(load(config), Artifacts(out), console(), seed, force)
    print_crosses(result, console())
    show(result, as_json)


@app.command()
@reported
def pretrain(config: ConfigPath, out: Out, seed: Seed = None, as_json: AsJson = False) -> None:
    """Cross statistics: the co-occurrence graph of the configured pairs, and a model of its rates.

    Example: sluice pretrain examples/marketplace.toml --out out/demo
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.run import steps

    show(steps.pretrain(load(config), Artifacts(out), console(), seed), as_json)


@app.command()
@reported
def train(
    config: ConfigPath, out: Out, seed: Seed = None, warm: Warm = None, cold: Cold = False, registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """Train and evaluate every configured model and the two towers, starting from the champion if there is one.

    Example: sluice train examples/movielens_100k.toml --out out/movielens --seed 7
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.release.warm_parent import Warmth
    from sluice.report.tables import print_models
    from sluice.run import steps

    result = steps.train(load(config), Artifacts(out), console(), seed, Warmth(warm, cold, registry))
    print_models(result["models"], console())
    show(result, as_json)


@app.command()
@reported
def prerank(
    config: ConfigPath,
    out: Out,
    costs: Annotated[
        Path | None, typer.Option(help="a file of `sluice measure-costs`; without it the configured costs count")
    ] = None,
    seed: Seed = None,
    force: Annotated[bool, typer.Option(help="train again where the same step has been done")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose the pre-ranker's fields (FSCD): sweep the penalty, write the frontier, pick the point for the budget.

    Example: sluice prerank examples/movielens_100k.toml --out out/movielens --costs out/movielens/costs.json
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.report.tables import print_prerank
    from sluice.run import steps

    result = steps.prerank(load(config), Artifacts(out), console(), costs, seed, force)
    print_prerank(result, console())
    show(result, as_json)


@app.command(name="measure-costs")
@reported
def measure_costs(
    bundle: BundlePath,
    repetitions: Annotated[int, typer.Option(min=10, help="paired runs per field and number of candidates")] = 100,
    as_json: AsJson = False,
) -> None:
    """Measure on the server's own path what each field costs the pre-ranker; writes costs.json beside the bundle.

    Example: sluice measure-costs out/demo/bundle
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    from serving.replay.cost_measurement import measure

    path, measured = measure(bundle, repetitions)
    typer.echo(path)
    show(measured.model_dump(mode="json"), as_json)


@app.command()
@reported
def bundle(config: ConfigPath, out: Out, as_json: AsJson = False) -> None:
    """Assemble and publish the bundle of a trained run.

    Example: sluice bundle examples/movielens_100k.toml --out out/movielens
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.run import steps

    show(steps.build_bundle(load(config), Artifacts(out), console()), as_json)


@app.command()
@reported
def verify(bundle: BundlePath, as_json: AsJson = False) -> None:
    """Checksums, parity, index recall against exact search.

    Example: sluice verify out/demo/bundle
    """
    from serving.assembly.verify import verify as verify_bundle

    result = verify_bundle(bundle)
    typer.echo(
        f"{result['version']}: {result['files']} files, {result['parity']['rows']} parity rows without a mismatch, "
        + (
            f"index recall {result['index']['mean']:.4f} (worst query {result['index']['worst']:.4f})"
            if "index" in result
            else "no items: it scores rows, and nothing can be served"
        )
    )
    show(result, as_json)


@app.command()
@reported
def federate(
    config: ConfigPath, out: Out, data: Data = None, until: Until = None, as_json: AsJson = False
) -> None:
    """Train where the data is: users of the log become clients of secure federated rounds; ends in a bundle.

    Example: sluice federate examples/movielens_100k.toml --data data/ml-100k --out out/federated
    """
    from contracts.artifacts import Artifacts
    from contracts.config.config import load
    from sluice.report.tables import print_federated
    from sluice.run import steps

    result = steps.federate(load(config), data, Artifacts(out), console(), until)
    print_federated(result["federated"], console())
    show(result, as_json)
