"""Commands from a log to a bundle, in the order of a run; the demo does them all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.errors import ConfigError
from sluice.commands.command import (
    AsJson,
    BundlePath,
    Cold,
    ConfigPath,
    Data,
    Out,
    Registry,
    Resume,
    Seed,
    Until,
    Warm,
    command,
    console,
    opened,
    show,
)

if TYPE_CHECKING:
    from contracts.config.config import Config


@command()
def init(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, JSON lines or Parquet, a file or a folder of them; .gz is fine")
    ],
    out: Annotated[Path | None, typer.Option(help="the configuration to write; NAME.toml here unless given")] = None,
    label: Annotated[str | None, typer.Option(help="its column, or Spark SQL true for positives")] = None,
    force: Annotated[bool, typer.Option(help="overwrite the configuration")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a table, guess roles, kinds, label and time, and write a commented configuration that runs.

    Example: sluice init data/ratings.csv --label "rating >= 4" --out ratings.toml
    """
    from sluice.commands.init_command import write_config

    show(write_config(file, out, label, force, console()), as_json)


@command()
def run(
    config: ConfigPath, out: Out = None, data: Data = None, seed: Seed = None, warm: Warm = None, cold: Cold = False,
    registry: Registry = None, resume: Resume = False, as_json: AsJson = False,
) -> None:
    """Logs to bundle: features, crosses, pretrain, train, bundle. Training starts from the champion, if there is one.

    Example: sluice run examples/movielens_100k.toml --data data/ml-100k --out out/movielens
    """
    from sluice.release.warm_parent import WarmStartSource
    from sluice.report.conclusion import conclusion
    from sluice.report.tables import print_models
    from sluice.run import jobs

    loaded, artifacts = opened(config, out, writes=True)
    result = jobs.run_all(loaded, data, artifacts, console(), seed, WarmStartSource(warm, cold, registry), resume)
    print_models(result.models or {}, console(), result.train.ranker_reason if result.train else None)
    for sentence in conclusion(result, str(config), str(artifacts.out)):
        console().print(sentence, highlight=False, markup=False)
    show(result, as_json)


@command()
def features(
    config: ConfigPath,
    out: Out = None,
    data: Data = None,
    day: Annotated[
        str | None, typer.Option(help="re-run exactly this day (YYYY-MM-DD), with the fitted encoding")
    ] = None,
    until: Until = None,
    encoding: Annotated[
        Path | None, typer.Option(help="keep ids, bins and scales of this run or bundle; nothing is fitted")
    ] = None,
    compare_engines: Annotated[
        int | None, typer.Option(metavar="ROWS", help="instead: compare the embedded engine with Apache Spark on ROWS "
                                 "rows of the log, in throw-away folders; exit code 3 where they differ")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ingest, labels, point-in-time features, encoded examples, online tables.

    Example: sluice features examples/movielens_100k.toml --data data/ml-100k --out out/movielens
    """
    from sluice.run import jobs

    loaded, artifacts = opened(config, out, writes=compare_engines is None)
    if compare_engines is not None:
        compare_on_engines(config, loaded, data, compare_engines, as_json)
        return
    if encoding is not None and day is not None:
        raise ConfigError("--day keeps the encoding of the run that it is a day of: leave --encoding out")
    made, leaks = jobs.run_features(loaded, data, artifacts, console(), day, until, encoding)
    show({**made.plain(), **({"leaks": leaks.plain()} if leaks else {})}, as_json)


def compare_on_engines(path: Path, config: Config, data: str | Path | None, rows: int, as_json: bool) -> None:
    """Prints table by table; GateRefused where the engines differ."""
    from contracts.errors import GateRefused
    from sluice.engines import comparison

    found = comparison.compare_engines(path, config, data, rows, comparison.measure_of(config))
    for line in comparison.lines(found):
        typer.echo(line)
    show(found, as_json)
    if not found.equal:
        names = ", ".join(table.table for table in found.tables if not table.equal)
        raise GateRefused(f"the engines differ in {names}; what is first in the list is where it begins: change its "
                          "expression, or set spark.master to that Apache Spark")


@command()
def quality(
    config: ConfigPath,
    out: Out = None,
    day: Annotated[str | None, typer.Option(help="YYYY-MM-DD; the last one without it")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a day's features by limits learned from the days before; exit code 3 where they are passed.

    Example: sluice quality examples/marketplace.toml --out out/demo
    """
    from sluice.run.quality_gate import check_quality

    loaded, artifacts = opened(config, out)
    found = check_quality(loaded, artifacts, console(), day)
    typer.echo(f"{found.day}: {found.judged} figures within their limits, learned from "
               f"{len(found.history)} days")
    show(found, as_json)


@command()
def crosses(
    config: ConfigPath,
    out: Out = None,
    seed: Seed = None,
    force: Annotated[bool, typer.Option(help="search again where the same search has been done")] = False,
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Search cross features (FIVES), compare them with baselines, and encode the examples with them.

    Example: sluice crosses examples/movielens_100k.toml --out out/movielens
    """
    from sluice.report.tables import print_crosses
    from sluice.run import jobs

    loaded, artifacts = opened(config, out, writes=True)
    result = jobs.run_crosses(loaded, artifacts, console(), seed, force, resume)
    print_crosses(result, console())
    show(result, as_json)


@command()
def pretrain(config: ConfigPath, out: Out = None, seed: Seed = None, as_json: AsJson = False) -> None:
    """Pair rates: the co-occurrence graph of the configured pairs, and a model of its click rates.

    A DNN with them and one without judge whether they are read. What was stopped goes on, where nothing has changed.

    Example: sluice pretrain examples/marketplace.toml --out out/demo
    """
    from sluice.run import jobs

    loaded, artifacts = opened(config, out, writes=True)
    show(jobs.run_pretrain(loaded, artifacts, console(), seed), as_json)


@command()
def train(
    config: ConfigPath, out: Out = None, seed: Seed = None, warm: Warm = None, cold: Cold = False,
    registry: Registry = None, resume: Resume = False,
    workers: Annotated[int, typer.Option(
        min=1, help="processes of this machine that train together, each on a core or a GPU of its own")] = 1,
    as_json: AsJson = False,
) -> None:
    """Train and evaluate every configured model and the two towers, starting from the champion if there is one.

    On several machines: torchrun --nnodes 2 --nproc-per-node 8 ... -m sluice.cli train CONFIG --out OUT

    Example: sluice train examples/movielens_100k.toml --out out/movielens --seed 7
    """
    from contracts.summaries import leaks, summary
    from sluice.release.warm_parent import WarmStartSource
    from sluice.report.conclusion import too_good
    from sluice.report.tables import print_models
    from sluice.run import jobs
    from sluice.run.one_process import is_first, start_several

    loaded, artifacts = opened(config, out, writes=True)
    if workers > 1:  # refused before they are started
        jobs.check_before_training(loaded, artifacts)
    start_several(workers, sys.argv[1:], (artifacts.out / "models", artifacts.channels))
    result = jobs.run_train(loaded, artifacts, console(), seed, WarmStartSource(warm, cold, registry), resume)
    if is_first():
        print_models(result.models, console(), result.ranker_reason)
        if warning := too_good(result.models, result.ranker, summary.read(artifacts.leaks, leaks.LeaksSummary)):
            console().print(warning, highlight=False, markup=False)
        show(result, as_json)


@command()
def prerank(
    config: ConfigPath,
    out: Out = None,
    costs: Annotated[
        Path | None, typer.Option(help="a file of `sluice measure-costs`; without it the configured costs count")
    ] = None,
    seed: Seed = None,
    force: Annotated[bool, typer.Option(help="train again where the same job has been done")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose the pre-ranker's fields (FSCD): sweep the penalty, write the frontier, pick the point for the budget.

    It keeps no checkpoint and starts over: its updates are so many hundred, however long the log.

    Example: sluice prerank examples/movielens_100k.toml --out out/movielens --costs out/movielens/costs.json
    """
    from sluice.report.tables import print_prerank
    from sluice.run import jobs

    loaded, artifacts = opened(config, out, writes=True)
    result = jobs.run_prerank(loaded, artifacts, console(), costs, seed, force)
    print_prerank(result, console())
    show(result, as_json)


@command("measure-costs")
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
    show(measured, as_json)


@command()
def bundle(
    config: ConfigPath,
    out: Out = None,
    delta: Annotated[Path | None, typer.Option(
        help="a bundle that hosts have; what leads from it to the new one goes to OUT/delta", metavar="BUNDLE")] = None,
    as_json: AsJson = False,
) -> None:
    """Assemble and publish the bundle of a trained run.

    Example: sluice bundle examples/movielens_100k.toml --out out/movielens
    """
    from sluice.release.shipped_delta import ship_delta
    from sluice.run.bundle_job import build_bundle

    loaded, artifacts = opened(config, out, writes=True)
    if delta is not None and delta.resolve() == artifacts.bundle.resolve():
        raise ConfigError(f"--delta {delta} is where the new bundle goes; give a copy of the one that hosts have")
    made = build_bundle(loaded, artifacts, console())
    if delta is not None:
        typer.echo(ship_delta(delta, artifacts))
    show(made, as_json)


@command()
def verify(bundle: BundlePath, as_json: AsJson = False) -> None:
    """Checksums, parity, index recall against exact search.

    Example: sluice verify out/demo/bundle
    """
    from serving.assembly.verify import verify as verify_bundle

    result = verify_bundle(bundle)
    typer.echo(
        f"{result.version}: {result.files} files, {result.parity.rows} parity rows without a mismatch, "
        + (
            f"index recall {result.index.mean:.4f} (worst query {result.index.worst:.4f})"
            if result.index
            else "no items: it scores rows, and nothing can be served"
        )
    )
    show(result, as_json)
