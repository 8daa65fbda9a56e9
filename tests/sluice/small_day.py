"""A small log, its configuration, and the commands of one day from raw rows to a champion, each a process that can be
killed at a named point.

Processes are forked from one that has imported everything, so that each costs what it does and not what it imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.pipelines.spark_processes import SMALL_SPARK

ROOT = Path(__file__).parents[2]
START, DAYS, ROWS, USERS, ITEMS = datetime(2026, 1, 5, tzinfo=UTC), 6, 1200, 40, 24
KILLED = -9
JOBS = ("features", "quality", "crosses", "pretrain", "train", "prerank", "bundle", "register", "promote")
CONFIG = """
name = "small"
seed = 5
[log]
path = "{data}/log"
user_id = "user_id"
item_id = "item_id"
request_id = "request"
event_time = "time"
known_time = "known"
key = ["id"]
[label.clicks]
path = "{data}/clicks"
on = ["id"]
event_time = "time"
known_time = "known"
window = "6h"
[windows]
statistics = [2026-01-05, 2026-01-07]
train = [2026-01-07, 2026-01-09]
validation = [2026-01-09, 2026-01-10]
test = [2026-01-10, 2026-01-11]
[pair_rates]
pairs = [["place", "kind"]]
epochs = 2
dim = 4
[train]
models = ["logistic_regression"]
embedding_dim = 4
epochs = 1
tower_epochs = 1
tower_dim = 4
tower_hidden = [8]
batch_size = 256
lightgbm_rows = 0
device = "cpu"
[crosses]
budget = 2
epochs = 1
compare_rows = 0
min_gain = 1.0
[retrieve]
candidates = 20
two_tower = 20
[prerank]
keep = 12
embedding_dim = 4
hidden = [8]
requests = 40
evaluation_requests = 20
list_length = 8
warm_steps = 4
sweep_steps = 3
tune_steps = 2
final_steps = 4
penalties = [0.01, 0.5]
recall_at = 5
[serve]
default_limit = 5
max_limit = 10
parity_rows = 30
[gate]
draws = 20
latency_requests = 10
max_miscalibration = 50.0
max_latency_ratio = 100.0
[quality]
deviations = 1000.0
[spark.settings]
""" + "".join(f'"{name}" = "{value}"\n' for name, value in SMALL_SPARK.items()) + "".join(f"""
[[fields]]
name = "{name}"
kind = "categorical"
side = "{side}"
min_count = 1
""" for name, side in (("user_id", "user"), ("group", "user"), ("item_id", "item"), ("kind", "item"),
                       ("place", "context"))) + """
[[fields]]
name = "recent"
kind = "sequence"
side = "user"
of = "item_id"
length = 3
[[fields]]
name = "of_item"
kind = "counter"
side = "item"
by = ["item_id"]
windows = ["2d"]
"""


def write_log(folder: Path) -> Path:
    """Three groups of users that click one kind of items each, at four places; returns the folder."""
    draw = np.random.default_rng(7)
    hours = np.sort(draw.uniform(0, 24 * DAYS, ROWS))
    times = np.array([START + timedelta(hours=float(hour)) for hour in hours])
    user, item, place = draw.integers(0, USERS, ROWS), draw.integers(0, ITEMS, ROWS), draw.integers(0, 4, ROWS)
    chance = 0.1 + 0.6 * (user % 3 == item % 3)
    for part in ("log", "clicks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    stamp = pa.timestamp("us", "UTC")
    columns = {
        "id": np.arange(ROWS), "request": [f"r{n // 4}" for n in range(ROWS)], "user_id": [f"u{n}" for n in user],
        "group": [f"g{n % 3}" for n in user], "item_id": [f"i{n}" for n in item], "kind": [f"k{n % 3}" for n in item],
        "place": [f"p{n}" for n in place], "time": pa.array(times, stamp), "known": pa.array(times, stamp),
    }
    pq.write_table(pa.table(columns), folder / "log" / "part-0.parquet")
    clicked = np.flatnonzero(draw.random(ROWS) < chance)
    when = times[clicked]
    write_clicks(folder, "part-0", clicked, when + timedelta(minutes=4), when + timedelta(minutes=9))
    (folder / "small.toml").write_text(CONFIG)
    return folder


def write_clicks(folder: Path, name: str, rows: np.ndarray, clicked: np.ndarray, known: np.ndarray) -> None:
    stamp = pa.timestamp("us", "UTC")
    pq.write_table(pa.table({"id": rows, "time": pa.array(clicked, stamp), "known": pa.array(known, stamp)}),
                   folder / "clicks" / f"{name}.parquet")


def command(job: str, data: Path, out: Path) -> list[str]:
    if job in ("register", "promote"):
        return [job, str(out)]
    return [job, str(data / "small.toml"), "--out", str(out), *(["--data", str(data)] if job == "features" else [])]


@dataclass(frozen=True)
class Kill:
    """The process group gets SIGKILL just before the n-th audit event `event` that matches `pattern`, once an event
    that matches `after` has been seen. The event "call" is the call of a function, FILE:NAME, and behind a blank what
    its arguments must match.
    """

    event: str
    pattern: str
    n: int = 1
    after: str = ""


class Forks:
    """One process that has imported everything and forks the others; `variables` are added to the environment."""

    def __init__(self, log: Path, **variables: str) -> None:
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sluice.job_forks", str(log)], cwd=ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=os.environ | variables)

    def run(self, arguments: list[str], kill: Kill | None = None, seconds: float | None = None) -> int:
        """The exit status, negative by the signal. `seconds` kills after so long."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([arguments, vars(kill) if kill else None, seconds]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def said(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        self._process.communicate(timeout=30)
