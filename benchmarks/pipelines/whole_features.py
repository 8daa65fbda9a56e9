"""The command `sluice features` as a whole, from its start to the end of its leak check, on logs made here.

    sluice bench whole_features [--cases plain_csv events_20000 published event_fresh] [--repetitions 3] [--out OUT]
                                [--json]

    plain_csv      289 thousand rows x 12 columns without times (benchmarks/pipelines/made_tables.py), the
                   configuration as `sluice init` writes it
    events_20000   the marketplace, users and items in proportion
    published      500 thousand events of the marketplace, tables published once a day
    event_fresh    the same log with publish_every = 0: every answer as of its own moment

Cases take turns, the median of each figure counts. Prints a Markdown table with what is wanted; with --json the last
line is one JSON object, `whole_features.CASE.FIGURE`, and `fresh_over_published`, of the seconds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.pipelines import made_tables
from benchmarks.pipelines.features import CONFIG, MILLION, simulated
from benchmarks.pipelines.process_cost import Cost, cost_of
from sluice.airflow_demo.daily_config import merged, write_toml
from sluice.commands.init_command import write_config

MEMORY = "4g"  # of a Spark driver, which the embedded engine has none of
ROWS, SMALL, LARGE = 289_000, 20_000, 500_000
OUTPUT = "made"
WANTED = {"plain_csv": "8 s", "events_20000": "4 s", "event_fresh": "3 times the published one"}
Case = Callable[[Path, float], Path]


def plain_csv(folder: Path, scale: float) -> Path:
    """FOLDER/config.toml of a made CSV in FOLDER/raw, of `scale` as many rows."""
    raw = folder / "raw"
    raw.mkdir()
    path = made_tables.plain(raw / "plain.csv", round(ROWS * scale))
    config = folder / "config.toml"
    write_config(path, config, None, True, Console(file=io.StringIO()))
    return config


def events_20000(folder: Path, scale: float) -> Path:
    """As `plain_csv`, the log simulated."""
    return simulated(CONFIG, SMALL * scale / MILLION, folder, MEMORY)


def published(folder: Path, scale: float) -> Path:
    """As `events_20000`, of more events."""
    return simulated(CONFIG, LARGE * scale / MILLION, folder, MEMORY)


def event_fresh(folder: Path, scale: float) -> Path:
    """As `published`, without a grid of publishes."""
    config = published(folder, scale)
    fresh = {"features": {"publish_every": 0}}
    return write_toml(config, merged(tomllib.loads(config.read_text(encoding="utf-8")), fresh))


CASES: Mapping[str, Case] = {case.__name__: case for case in (plain_csv, events_20000, published, event_fresh)}


def run(config: Path, folder: Path) -> Cost:
    """Of the command, as somebody starts it; what an earlier run left is gone before."""
    out = folder / OUTPUT
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "sluice.cli", "features", str(config), "--data", str(folder / "raw"), "--out",
               str(out)]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return cost_of(command, {**os.environ, "TMPDIR": scratch}, Path(scratch))


def measure(names: Sequence[str], folder: Path, repetitions: int, scale: float = 1.0) -> dict[str, list[Cost]]:
    """Costs by case; `scale`: of the rows that the cases have."""
    configs: dict[str, Path] = {}
    for name in names:
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        configs[name] = CASES[name](place, scale)
    found: dict[str, list[Cost]] = {name: [] for name in names}
    for turn in range(repetitions):
        for name in [*names[turn % len(names):], *names[:turn % len(names)]]:
            cost = run(configs[name], folder / name)
            print(f"{name:13s} {cost.seconds:.1f} s, {cost.cpu_seconds:.1f} CPU s", flush=True)
            found[name].append(cost)
    return found


def summed_up(costs: Mapping[str, Sequence[Cost]]) -> dict[str, Any]:
    """Medians by case and figure; `fresh_over_published`, None where one of both is missing."""
    found: dict[str, Any] = {
        name: {figure: round(statistics.median(getattr(cost, figure) for cost in runs), 3) for figure in Cost._fields}
        for name, runs in costs.items()}
    both = {"published", "event_fresh"} <= found.keys()
    ratio = round(found["event_fresh"]["seconds"] / found["published"]["seconds"], 2) if both else None
    return {"whole_features": found, "fresh_over_published": ratio}


def table(found: Mapping[str, Any]) -> str:
    """Markdown, a row for each case."""
    rows = ["| case | seconds | CPU seconds | peak, MiB | wanted |", "|---|---|---|---|---|"]
    for name, cost in found["whole_features"].items():
        figures = f"{cost['seconds']:.1f} | {cost['cpu_seconds']:.1f} | {cost['peak_mib']:,.0f}"
        rows.append(f"| {name} | {figures} | {WANTED.get(name, '')} |")
    ratio = found["fresh_over_published"]
    return "\n".join([*rows, *([] if ratio is None else [f"\nevent-fresh over published: {ratio}"])])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows of every case, for a first look")
    parser.add_argument("--out", type=Path, help="kept afterwards; none given: a folder that goes again")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    chosen = parser.parse_args(argv)
    if chosen.repetitions < 1 or chosen.scale <= 0:
        parser.error("--repetitions is at least 1, --scale above 0")
    with tempfile.TemporaryDirectory() as scratch:
        found = summed_up(measure(chosen.cases, Path(chosen.out or scratch), chosen.repetitions, chosen.scale))
    print(table(found))
    if chosen.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
