"""A log of which one item has 30% of the events, and `sluice features` on it, on any engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.config.config import Config

ROWS, DAYS, SKEW = 6_000, 10, 0.3
START = datetime(2026, 1, 5, tzinfo=UTC)
REFUSED = ("sluice: log (s3a://bucket/log.parquet): this Apache Spark has no reader of such addresses; add its package "
           "to spark.settings (docs/how-to/clusters.md), or read with the embedded engine")
LOG = """
[log]
path = "{{data}}/log.parquet"
user_id = "user_id"
item_id = "item_id"
event_time = "time"
key = ["id"]
[label]
expression = "clicked"
"""
CONFIG = """
name = "skewed"
[spark]
master = "{master}"
[spark.settings]
"spark.sql.shuffle.partitions" = "2"
[features]
also_fresh = true
max_key_rows = 500
""" + LOG + """[[fields]]
name = "user_id"
kind = "categorical"
side = "user"
[[fields]]
name = "item_id"
kind = "categorical"
side = "item"
[[fields]]
name = "recent"
kind = "sequence"
side = "user"
of = "item_id"
length = 5
[[fields]]
name = "item_clicks"
kind = "counter"
side = "item"
by = ["item_id"]
windows = ["2d", "7d"]
[pair_rates]
pairs = [["user_id", "item_id"]]
"""


def configuration(master: str) -> Config:
    return Config.model_validate(tomllib.loads(CONFIG.format(master=master)))


def write_log(folder: Path) -> None:
    """One item has 30% of the events."""
    draw = np.random.default_rng(3)
    hours = np.sort(draw.uniform(0, 24 * DAYS, ROWS))
    item = np.where(draw.random(ROWS) < SKEW, 0, draw.integers(1, 200, ROWS))
    pq.write_table(pa.table({
        "id": np.arange(ROWS), "user_id": [f"u{u}" for u in draw.integers(0, 500, ROWS)],
        "item_id": [f"i{i}" for i in item], "time": [START + timedelta(hours=float(hour)) for hour in hours],
        "clicked": (draw.random(ROWS) < 0.05 + 0.1 * (item == 0)).astype(np.int64),
    }), folder / "log.parquet")


def command(folder: Path, text: str, name: str, data: str) -> subprocess.CompletedProcess[str]:
    """`sluice features`, configured by `text`, into FOLDER/NAME, in a process of its own: one Spark context each."""
    config = folder / f"{name}.toml"
    config.write_text(text, encoding="utf-8")
    words = ["features", str(config), "--data", data, "--out", str(folder / name), "--json"]
    return subprocess.run([sys.executable, "-m", "sluice.cli", *words], capture_output=True, text=True, check=False,
                          env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable})


def features(folder: Path, master: str, name: str) -> dict[str, str]:
    """Content hashes of a run."""
    done = command(folder, CONFIG.format(master=master), name, str(folder))
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {window: found["examples"][window]["content_hash"] for window in ("train", "validation", "test")}


def refused_address(folder: Path, master: str) -> str:
    """What a run says whose engine has no reader of the log's address."""
    done = command(folder, CONFIG.format(master=master), "refused", "s3a://bucket")
    assert done.returncode == 1
    return next(line for line in done.stderr.splitlines() if line.startswith("sluice: "))
