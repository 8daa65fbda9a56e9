"""What callers were told beside what features, watch and bill, by their commands, make of the response log.

    sluice bench served_day BUNDLE --data RAW [--seconds 300] [--rate 30] [--workers 2] [--json]

BUNDLE is of the simulated marketplace, and RAW its log. Visitors ask a real `sluice serve --log-answers` and click with
the true probability; then `sluice features`, `sluice watch` and `sluice bill` read what was logged. These must be 0:

    impressions  items that callers were shown, less the events of `features` that are the same, with their labels
    extra        events that no caller was shown
    calls        answers that callers had, less those of the watch
    clicks       that callers made, less those that the bill has
    money        what those clicks cost by the answers, less the bill, payer by payer (the largest difference)
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as ds

from contracts.artifacts import ITEM, LABEL, REQUEST, Artifacts
from contracts.bundle.bundle import read_manifest
from contracts.config.config import Config, load
from contracts.errors import ConfigError
from pipelines.marketplace.marketplace import build_world
from sluice.airflow_demo.daily_config import SOURCE, merged, write_toml
from sluice.airflow_demo.site_users import SiteUsers
from sluice.demo.server_process import ServerProcess

WINDOWS = 60  # the label's window is this part of the stretch
PAYER = "advertiser_id"
LOG = {
    "path": "{data}/answers", "user_id": "user", "item_id": "item_id", "request_id": "request_id",
    "event_time": "time", "position": "position", "bid": "bid", "key": ["request_id", "item_id"],
    "derive": {
        "shown": "explode(arrays_zip(items, positions, bids))", "item_id": "shown.items",
        "position": "shown.positions", "bid": "shown.bids", "device": "context['device']",
        "placement": "context['placement']", "hour": "cast(context['hour'] as bigint)",
        "weekday": "cast(context['weekday'] as bigint)"},
}


class Told(NamedTuple):
    """By a caller's own notes."""

    request: str
    item: str
    price: float


class Visitors(SiteUsers):
    """Who also note what they were told; what they click is `clicked`."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.told: list[Told] = []

    def answered(self, request: Any, answer: Any) -> None:
        super().answered(request, answer)
        self.told += [Told(request.request_id, item.item_id, item.price) for item in answer.items]

    def clicked(self) -> set[tuple[str, str]]:
        rows = ds.dataset(self.clicks, format="parquet").to_table(columns=["request_id", "item_id"]).to_pylist()
        return {(row["request_id"], row["item_id"]) for row in rows}


def serve(bundle: Path, folder: Path, config: Config, seconds: float, rate: float, workers: int) -> Visitors:
    """A stretch of real time: the log of answers and of clicks lies in the folder then."""
    if config.simulation is None:
        raise ConfigError(f"{config.name} has no [simulation] section; visitors need one")
    world = build_world(config.simulation, config.seed)
    server = ServerProcess(bundle, folder / "server.log", options=(
        "--log-answers", str(folder / "answers"), "--workers", str(workers)))
    try:
        visitors = Visitors(server.target, rate, world, folder / "clicks", config.seed)
        with visitors:
            time.sleep(seconds)
    finally:
        server.stop()
    visitors.flush()
    return visitors


def write_config(folder: Path, window: int) -> Path:
    """The marketplace's, with the response log as its log."""
    config = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    del config["simulation"], config["federated"], config["log"]
    config = merged(config, {
        "log": LOG, "windows": {"statistics": 0.25, "train": 0.25, "validation": 0.25, "test": 0.25},
        "label": {"clicks": {"window": f"{window}s"}}})
    del config["label"]["clicks"]["known_time"]
    return write_toml(folder / "served.toml", config)


def read_back(folder: Path, config: Path, version: str, since: datetime) -> dict[str, Any]:
    """The last lines of the three commands, as JSON; features are in OUT."""
    stretch = ("--since", since.isoformat(), "--until", (datetime.now(UTC) + timedelta(seconds=1)).isoformat())
    answers = ("--answers", folder / "answers")
    found = {}
    for name, options in {
        "features": ("--out", folder / "out"),
        "watch": ("--out", folder / "out", *answers, "--bundle", version, *stretch),
        "bill": (*answers, "--by", PAYER, *stretch),
    }.items():
        line = [sys.executable, "-m", "sluice.cli", name, config, "--data", folder, *options, "--json"]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
        if done.returncode not in (0, 4):  # 4: the watch has something to say against the bundle
            raise RuntimeError(f"sluice {name}: {done.stderr}")
        found[name] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compared(folder: Path, visitors: Visitors, found: dict[str, Any]) -> dict[str, Any]:
    """Callers beside the commands."""
    clicked = visitors.clicked()
    told = {(one.request, one.item, (one.request, one.item) in clicked) for one in visitors.told}
    columns = ds.dataset(Artifacts(folder / "out").events, format="parquet").to_table(columns=[REQUEST, ITEM, LABEL])
    events = [(row[REQUEST], row[ITEM], row[LABEL] > 0) for row in columns.to_pylist()]
    items = ds.dataset(folder / "items", format="parquet").to_table(columns=["item_id", PAYER]).to_pylist()
    payer, costs = {row["item_id"]: row[PAYER] for row in items}, defaultdict[str, list[float]](list)
    for one in visitors.told:
        if (one.request, one.item) in clicked:
            costs[payer[one.item]].append(one.price)
    billed = {line["payer"]: line["amount"] for line in found["bill"]["lines"]}
    answered = sum(outcome.code == "OK" for outcome in visitors.outcomes)
    return {
        "answered": answered, "shown": len(visitors.told), "clicked": len(clicked), "billed": found["bill"]["amount"],
        "impressions": len(told) - len(told & set(events)), "extra": len(events) - len(told & set(events)),
        "calls": answered - _judged(found["watch"]), "clicks": len(clicked) - found["bill"]["clicks"],
        "money": max(abs(math.fsum(costs[name]) - billed.get(name, 0.0)) for name in billed),
        "lost": found["bill"]["lost_calls"], "watch": [figure["sentence"] for figure in found["watch"]["figures"]],
    }


def _judged(watch: dict[str, Any]) -> int:
    """Calls of the bundle that were answered: rows, less refusals and failures."""
    figures = {figure["name"]: figure["sentence"] for figure in watch["figures"]}
    calls = int(figures["error_rate"].split(" of ")[1].split()[0])
    rate = next(figure["value"] for figure in watch["figures"] if figure["name"] == "error_rate")
    return round(calls * (1 - rate))


def measure(bundle: Path, data: Path, seconds: float, rate: float, workers: int) -> dict[str, Any]:
    config, since = load(SOURCE), datetime.now(UTC)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("users", "items"):
            (folder / name).symlink_to((data / name).resolve())
        visitors = serve(bundle, folder, config, seconds, rate, workers)
        written = write_config(folder, max(int(seconds / WINDOWS), 1))
        found = read_back(folder, written, read_manifest(bundle).version, since)
        return {"seconds": seconds, **compared(folder, visitors, found)}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="sluice bench served_day", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the marketplace's log: users and items")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rate", type=float, default=30.0, help="visits a second")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    found = measure(given.bundle, given.data, given.seconds, given.rate, given.workers)
    for name, value in found.items():
        print(f"{name:<12} {value}")
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
