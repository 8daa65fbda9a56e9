"""The feature job at growing sizes of the marketplace: embedded, beside a script for DuckDB, beside Apache Spark.

    sluice bench features [--millions 0.5 1 5 20] [--engines embedded duckdb spark_local] [--repetitions 3] [--out OUT]
                          [--config FILE] [--memory 8g] [--peer FOLDER] [--merge] [--json]

Users and items grow along with the events, so that every table does. Each run is a process of its own; the engines take
turns, and the median of each figure counts: seconds, CPU seconds of the process and its children (which other work on
the machine disturbs less), the peak of their memory, the peak of temporary files. The platform's job writes what the
script does not (row hashes, quarantine, parity rows); the script, benchmarks/pipelines/duckdb_features.py, is what
somebody writes who needs this one log alone. A line of least squares through the sizes gives the seconds a million
events (slope) and those of nothing (intercept).

Apache Spark's first two runs on a machine map no archive of classes yet (pipelines/engine/local_java.py), the second is
slower for leaving one.

What takes longer than a sitting is measured in pieces: --out keeps each run as it ends (OUT/runs.jsonl), and with
--merge the logs and the runs that lie there count, too; `--merge --repetitions 0` runs nothing and prints the line.

Prints a Markdown table; with --json the last line is one JSON object, `features.ENGINE.FIGURE` by number of events.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pipelines import kept_costs
from benchmarks.pipelines.feature_peers import ENGINES, command, duckdb_python, environment
from benchmarks.pipelines.process_cost import Cost, cost_of
from contracts.artifacts import Artifacts
from contracts.config.config import load
from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from pipelines.marketplace.marketplace import simulate
from sluice.airflow_demo.daily_config import merged, write_toml

CONFIG = Path(__file__).parents[2] / "examples" / "marketplace.toml"
PEER = Path(tempfile.gettempdir()) / "sluice-bench-duckdb"
MILLION = 1_000_000
Costs = Mapping[str, Mapping[int, Sequence[Cost]]]  # engine -> events -> one of each run


def simulated(path: Path, millions: float, folder: Path, memory: str) -> Path:
    """The configuration for `millions` events; their log is in folder/raw. Raises ConfigError without a simulation."""
    config = load(path)
    if config.simulation is None:
        raise ConfigError(f"{path} has no [simulation] section")
    places = Artifacts(folder)
    simulate(grown(config.simulation, round(millions * MILLION)), config.seed, places.raw, places.truth)
    settings = {"spark": {"settings": {"spark.driver.memory": memory}}}
    return write_toml(folder / "config.toml", merged(tomllib.loads(path.read_text(encoding="utf-8")), settings))


def grown(simulation: Simulation, events: int) -> Simulation:
    """As many users and items an event as before."""
    share = events / simulation.events
    users, items = (max(1, round(count * share)) for count in (simulation.users, simulation.items))
    return simulation.model_copy(update={"events": events, "users": users, "items": items})


def measure(
    config: Path, folder: Path, engines: Sequence[str], repetitions: int, memory: str, peer: Path | None,
) -> Iterator[tuple[str, Cost]]:
    """(engine, the cost of a run); each round begins with another engine. Output of the embedded one stays."""
    for turn in range(repetitions):
        for engine in [*engines[turn % len(engines):], *engines[:turn % len(engines)]]:
            out = folder if engine == "embedded" else folder / engine
            _emptied(folder, out)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                started = command(engine, config, folder / "raw", out, Path(scratch), memory, peer)
                cost = cost_of(started, environment(engine, Path(scratch)), Path(scratch))
            print(f"{engine:12s} {folder.name:>6s} million: {said(cost)}", flush=True)
            yield engine, cost


def _emptied(folder: Path, out: Path) -> None:
    """A run begins without the output of the one before it."""
    if out != folder:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return
    for place in ("ingest", "features", "encoding", "examples", "online", "parity"):
        shutil.rmtree(folder / place, ignore_errors=True)


def said(cost: Cost) -> str:
    return (f"{cost.seconds:.1f} s, {cost.cpu_seconds:.1f} CPU s, {cost.peak_mib:.0f} MiB, "
            f"{cost.spilled_mib:.0f} MiB of temporary files")


def medians(costs: Costs) -> dict[str, dict[str, Any]]:
    """engine -> figure -> events (as text) -> median; and `slope`, `intercept` of the seconds, a million events."""
    found: dict[str, dict[str, Any]] = {}
    for engine, by_events in costs.items():
        figures: dict[str, Any] = {
            figure: {str(events): round(statistics.median(getattr(cost, figure) for cost in runs), 3)
                     for events, runs in by_events.items()}
            for figure in Cost._fields}
        slope, intercept = line([(events / MILLION, figures["seconds"][str(events)]) for events in by_events])
        found[engine] = {**figures, "slope": slope, "intercept": intercept}
    return found


def line(points: Iterable[tuple[float, float]]) -> tuple[float | None, float | None]:
    """(slope, intercept) of least squares; None of a single point."""
    xs, ys = zip(*points, strict=True)
    if len(set(xs)) < 2:
        return None, None
    slope, intercept = statistics.linear_regression(xs, ys)
    return round(slope, 3), round(intercept, 3)


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown, a row for each engine and size."""
    rows = ["| engine | events | " + " | ".join(Cost._fields) + " |", "|---|---|" + "---|" * len(Cost._fields)]
    for engine, figures in found.items():
        for events in figures["seconds"]:
            cells = " | ".join(f"{figures[name][events]:,.1f}" for name in Cost._fields)
            rows.append(f"| {engine} | {int(events):,} | {cells} |")
        if figures["slope"] is not None:
            line_of = f"{figures['slope']:.1f} s a million, {figures['intercept']:.1f} s of nothing"
            rows.append(f"| {engine} | | {line_of} | | | |")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=CONFIG, help="of a simulated marketplace")
    parser.add_argument("--millions", type=float, nargs="+", default=[0.5, 1, 5, 20])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, help="kept afterwards; none given: a folder that goes again")
    parser.add_argument("--memory", default="8g", help="of the Spark driver and of DuckDB")
    parser.add_argument("--peer", type=Path, default=PEER, help="environment with DuckDB; made where missing")
    parser.add_argument("--merge", action="store_true", help="with what earlier calls left in --out")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    chosen = parser.parse_args(argv)
    if chosen.merge and chosen.out is None:
        parser.error("--merge needs the --out of the earlier calls")
    with tempfile.TemporaryDirectory() as scratch:
        found = medians(_measured(chosen, Path(chosen.out or scratch)))
    print(table(found))
    if chosen.json:
        print(json.dumps({"features": found}))


def _measured(chosen: argparse.Namespace, out: Path) -> Costs:
    """Runs what is asked for; the runs that `out` holds then."""
    peer = duckdb_python(chosen.peer) if "duckdb" in chosen.engines and chosen.repetitions else None
    if not chosen.merge:
        (out / kept_costs.FILE).unlink(missing_ok=True)
    for millions in chosen.millions if chosen.repetitions else ():
        folder = out / f"{millions:g}"
        config = folder / "config.toml"
        if not (chosen.merge and config.exists()):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            config = simulated(chosen.config, millions, folder, chosen.memory)
        for engine, cost in measure(config, folder, chosen.engines, chosen.repetitions, chosen.memory, peer):
            kept_costs.keep(out, engine, round(millions * MILLION), cost)
    return kept_costs.kept(out)


if __name__ == "__main__":
    main()
