"""The `sluice` command. Heavy libraries are imported by the step that needs them, so that --help answers at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="sluice",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A multi-stage ranking platform: raw logs in, a gRPC server out.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused by a gate, 4 the watch wants a roll-back.",
)

ConfigPath = Annotated[Path, typer.Argument(help="the run's TOML file", metavar="CONFIG")]
Out = Annotated[Path, typer.Option(help="where everything is written")]
Data = Annotated[Path | None, typer.Option(help="the folder that {data} stands for in the configuration")]
Seed = Annotated[int | None, typer.Option(help="instead of the configuration's seed")]
Until = Annotated[str | None, typer.Option(help="read the log as it stood when this day (YYYY-MM-DD) ended")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object as the last line")]
Registry = Annotated[
    str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI, else the data base in the run's folder")
]
Warm = Annotated[
    str | None, typer.Option(help="start from this bundle: a folder, or models:/NAME@ALIAS; else from the champion")
]
Cold = Annotated[bool, typer.Option("--cold", help="start training from nothing")]
BundlePath = Annotated[Path, typer.Argument(help="a bundle's folder", metavar="BUNDLE")]


def _reported(command: Callable[..., None]) -> Callable[..., None]:
    """Turns a SluiceError into its one sentence and its exit code."""

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        from contracts.errors import SluiceError

        try:
            command(*args, **kwargs)
        except SluiceError as error:
            typer.echo(f"sluice: {error}", err=True)
            raise typer.Exit(error.exit_code) from None

    return wrapper


def _console() -> Any:
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal else Console(stderr=True, width=120)


def _print(result: dict[str, Any], as_json: bool) -> None:
    import json

    if as_json:
        typer.echo(json.dumps(result, default=str))


@app.command()
@_reported
def demo(
    out: Out = Path("out/demo"),
    events: Annotated[int | None, typer.Option(min=20_000, help="impressions to simulate")] = None,
    keep_serving: Annotated[bool, typer.Option(help="leave the server running")] = False,
    as_json: AsJson = False,
) -> None:
    """Everything on a simulated marketplace: log, features, models, bundle, live server, requests, report.

    Example: sluice demo --events 100000 --out out/small
    """
    from sluice.demo import require_sound, run_demo

    found = run_demo(out, events, keep_serving, _console())
    _print(found, as_json)
    require_sound(found)


@app.command()
@_reported
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
    from sluice.init_command import init as init_file

    _print(init_file(file, out, label, force, _console()), as_json)


@app.command()
@_reported
def run(
    config: ConfigPath, out: Out, data: Data = None, seed: Seed = None, warm: Warm = None, cold: Cold = False,
    registry: Registry = None, as_json: AsJson = False,
) -> None:
    """Logs to bundle: features, crosses, pretrain, train, bundle. Training starts from the champion, if there is one.

    Example: sluice run examples/movielens_100k.toml --data data/ml-100k --out out/movielens
    """
    from contracts.artifacts import Artifacts
    from contracts.config import load
    from sluice import steps
    from sluice.tables import print_models
    from sluice.warm_parent import Warmth

    result = steps.run(load(config), data, Artifacts(out), _console(), seed, Warmth(warm, cold, registry))
    print_models(result["models"], _console())
    _print(result, as_json)


@app.command()
@_reported
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
    from contracts.config import load
    from sluice import steps

    _print(steps.features(load(config), data, Artifacts(out), _console(), day, until), as_json)


@app.command()
@_reported
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
    from contracts.config import load
    from sluice import quality as gate

    found = gate.run(load(config), Artifacts(out), _console(), day)
    typer.echo(f"{found['day']}: {found['judged']} figures within their limits, learned from "
               f"{len(found['history'])} days")
    _print(found, as_json)


@app.command()
@_reported
def pretrain(config: ConfigPath, out: Out, seed: Seed = None, as_json: AsJson = False) -> None:
    """Cross statistics: the co-occurrence graph of the configured pairs, and a model of its rates.

    Example: sluice pretrain examples/marketplace.toml --out out/demo
    """
    from contracts.artifacts import Artifacts
    from contracts.config import load
    from sluice import steps

    _print(steps.pretrain(load(config), Artifacts(out), _console(), seed), as_json)


@app.command()
@_reported
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
    from contracts.config import load
    from sluice import steps
    from sluice.tables import print_crosses

    result = steps.crosses(load(config), Artifacts(out), _console(), seed, force)
    print_crosses(result, _console())
    _print(result, as_json)


@app.command()
@_reported
def train(
    config: ConfigPath, out: Out, seed: Seed = None, warm: Warm = None, cold: Cold = False, registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """Train and evaluate every configured model and the two towers, starting from the champion if there is one.

    Example: sluice train examples/movielens_100k.toml --out out/movielens --seed 7
    """
    from contracts.artifacts import Artifacts
    from contracts.config import load
    from sluice import steps
    from sluice.tables import print_models
    from sluice.warm_parent import Warmth

    result = steps.train(load(config), Artifacts(out), _console(), seed, Warmth(warm, cold, registry))
    print_models(result["models"], _console())
    _print(result, as_json)


@app.command()
@_reported
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
    from contracts.config import load
    from sluice import steps
    from sluice.tables import print_prerank

    result = steps.prerank(load(config), Artifacts(out), _console(), costs, seed, force)
    print_prerank(result, _console())
    _print(result, as_json)


@app.command(name="measure-costs")
@_reported
def measure_costs(
    bundle: BundlePath,
    repetitions: Annotated[int, typer.Option(min=10, help="paired runs per field and number of candidates")] = 100,
    as_json: AsJson = False,
) -> None:
    """Measure on the server's own path what each field costs the pre-ranker; writes costs.json beside the bundle.

    Example: sluice measure-costs out/demo/bundle
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    from serving.cost_measurement import measure

    path, measured = measure(bundle, repetitions)
    typer.echo(path)
    _print(measured.model_dump(mode="json"), as_json)


@app.command()
@_reported
def bundle(config: ConfigPath, out: Out, as_json: AsJson = False) -> None:
    """Assemble and publish the bundle of a trained run.

    Example: sluice bundle examples/movielens_100k.toml --out out/movielens
    """
    from contracts.artifacts import Artifacts
    from contracts.config import load
    from sluice import steps

    _print(steps.build_bundle(load(config), Artifacts(out), _console()), as_json)


@app.command()
@_reported
def federate(
    config: ConfigPath, out: Out, data: Data = None, until: Until = None, as_json: AsJson = False
) -> None:
    """Train where the data is: users of the log become clients of secure federated rounds; ends in a bundle.

    Example: sluice federate examples/movielens_100k.toml --data data/ml-100k --out out/federated
    """
    from contracts.artifacts import Artifacts
    from contracts.config import load
    from sluice import steps
    from sluice.tables import print_federated

    result = steps.federate(load(config), data, Artifacts(out), _console(), until)
    print_federated(result["federated"], _console())
    _print(result, as_json)


@app.command()
@_reported
def verify(bundle: BundlePath, as_json: AsJson = False) -> None:
    """Checksums, parity, index recall against exact search.

    Example: sluice verify out/demo/bundle
    """
    from serving.verify import verify as verify_bundle

    result = verify_bundle(bundle)
    typer.echo(
        f"{result['version']}: {result['files']} files, {result['parity']['rows']} parity rows without a mismatch, "
        + (
            f"index recall {result['index']['mean']:.4f} (worst query {result['index']['worst']:.4f})"
            if "index" in result
            else "no items: it scores rows, and nothing can be served"
        )
    )
    _print(result, as_json)


RunFolder = Annotated[Path, typer.Argument(help="the --out folder of a run", metavar="OUT")]


@app.command()
@_reported
def register(
    out: RunFolder,
    registry: Registry = None,
    alias: Annotated[str, typer.Option(help="what to point at it: challenger, shadow or a name of your own")] = (
        "challenger"
    ),
    commit: Annotated[str | None, typer.Option(help="of the code; found by git where it can be")] = None,
    as_json: AsJson = False,
) -> None:
    """Enter a run's bundle into the model registry, once, with signature and lineage.

    Example: sluice register out/demo
    """
    from sluice import registration

    found = registration.register(out, registry, alias, commit)
    typer.echo(f"{found['tags']['bundle_version']} is version {found['number']} of {found['name']}, {alias}")
    _print(found, as_json)


@app.command()
@_reported
def promote(
    out: RunFolder,
    registry: Registry = None,
    force: Annotated[bool, typer.Option(help="promote in spite of the gate's reasons")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a run's registered bundle champion, unless the gate refuses (exit code 3).

    Example: sluice promote out/demo
    """
    from sluice import registration

    found = registration.promote(out, registry, force)
    typer.echo(f"version {found['number']} {'is now champion' if found['promoted'] else 'was champion already'}")
    _print(found, as_json)


@app.command()
@_reported
def rollback(
    name: Annotated[str, typer.Argument(metavar="NAME", help="of the registered model")],
    registry: Registry = None,
    only: Annotated[str | None, typer.Option(help="roll back only while this bundle version is champion")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the version that the champion replaced champion again.

    Example: sluice rollback marketplace --registry sqlite:///out/demo/mlflow.db
    """
    from sluice import registration

    found = registration.rollback(name, registry, only)
    typer.echo(f"champion of {name} is version {found['number']}, {found['champion']}")
    _print(found, as_json)


Instant = Annotated[str | None, typer.Option(help="ISO 8601; UTC where no zone is given", metavar="TIME")]


@app.command()
@_reported
def watch(
    config: ConfigPath,
    out: Out,
    answers: Annotated[Path, typer.Option(help="the answer log of `sluice serve --log-answers`")],
    clicks: Annotated[Path | None, typer.Option(help="instead of the configured table of clicks")] = None,
    data: Data = None,
    since: Instant = None,
    until: Instant = None,
    registry: Registry = None,
    bundle: Annotated[str | None, typer.Option(help="judge this version, not the registry's champion")] = None,
    roll_back: Annotated[bool, typer.Option("--roll-back", help="do so where it is wanted")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge the champion by its answers and the clicks on them; exit code 4 when it should be rolled back.

    Example: sluice watch examples/marketplace.toml --out out/demo --answers out/demo/answers --data out/demo/raw
    """
    from contracts.config import load
    from contracts.errors import RollBackWanted
    from contracts.sections.section import instant
    from sluice.watch import Watched, lines
    from sluice.watch import watch as judge

    asked = Watched(out, answers, clicks, data, instant(since), instant(until), registry, bundle)
    found = judge(load(config), asked, roll_back)
    for line in lines(found):
        typer.echo(line)
    _print(found, as_json)
    if found["reasons"]:
        raise RollBackWanted(f"{found['bundle']} should be rolled back: " + "; ".join(found["reasons"]))


@app.command()
@_reported
def serve(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="a bundle's folder, or models:/NAME@ALIAS")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 50051,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    log_answers: Annotated[
        Path | None, typer.Option(help="append every answer to the Parquet log in this folder")
    ] = None,
    registry: Annotated[str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI")] = None,
    poll_seconds: Annotated[float, typer.Option(min=0.1, help="how often the alias is looked up")] = 5.0,
    connection_seconds: Annotated[
        float, typer.Option(min=0.5, help="an alias: how long a caller's connection lives; a change takes as long")
    ] = 30.0,
) -> None:
    """Serve a bundle over gRPC (sluice.v1.Ranking, health, reflection) until SIGTERM or Ctrl-C.

    Of an alias the bundle is changed whenever the alias moves, without a failed request.

    Example: sluice serve models:/marketplace@champion --log-answers out/demo/answers
    """
    from sluice.serve_command import serve as serve_bundle

    serve_bundle(bundle, host, port, log_answers, registry, poll_seconds, connection_seconds)


@app.command()
@_reported
def rank(
    user: Annotated[str, typer.Option(help="user id; an unknown one is answered too")],
    target: Annotated[str, typer.Option(help="HOST:PORT")] = "127.0.0.1:50051",
    limit: Annotated[int | None, typer.Option(help="number of items")] = None,
    context: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, repeatable")] = None,
    recent: Annotated[list[str] | None, typer.Option(help="recent item ids, newest first, repeatable")] = None,
    timeout: Annotated[float, typer.Option(help="deadline in seconds", min=0.001)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """The smallest client.

    Example: sluice rank --user u_00017 --context device=phone --limit 5 --json
    """
    from sluice.rank_command import rank_once

    rank_once(user, target, limit, context or [], recent, timeout, as_json)


@app.command()
@_reported
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="the --out folder of a run or demo")]) -> None:
    """One self-contained HTML page with the run's figures and plots.

    Example: sluice report out/demo
    """
    from sluice.report import write_report

    typer.echo(write_report(folder))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@_reported
def bench(context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Run a benchmark of benchmarks/, side by side with its peers; further options go to it.

    Example: sluice bench funnel --help
    """
    import subprocess

    from contracts.errors import ConfigError

    known = sorted(p.stem for p in (Path(__file__).parents[1] / "benchmarks").glob("*.py") if p.stem != "__init__")
    if name not in known:
        raise ConfigError(f"there is no benchmark {name!r}; there are: {', '.join(known)}")
    raise typer.Exit(
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *context.args], check=False).returncode
    )


def main() -> None:
    app()


if __name__ == "__main__":
    main()
