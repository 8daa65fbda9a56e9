"""A log of which one item has 30% of the events, event-fresh click rates of many windows, and workers of little memory.

    python -m tests.pipelines.heavy_key [MB]

runs `sluice features` on a standalone cluster of two workers whose Python workers may have so many MB, with the key
whole and in slices, and on the embedded engine, and says how each ended. Exit 1 unless the key whole is too much there
and its slices make what the embedded engine makes.

A Python worker with the platform imported takes some 300 MB of addresses where Arrow's allocator reserves none ahead.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import WINDOWS
from tests.pipelines.skewed_log import DAYS, LOG, SKEW, START, command
from tests.pipelines.spark_processes import QUICK_PROCESSES, cluster

ROWS, ITEMS, MOST = 300_000, 2_000, 380  # MB
AGES = [f"{hours}h" for hours in range(6, 126, 6)]
TOO_MUCH, MADE = "a Python worker has not enough memory for the rows of its task", "examples "
CONFIG = """
name = "heavy"
[spark]
master = "{master}"
[spark.settings]
{settings}
[features]
publish_every = 0
max_key_rows = {most}
""" + LOG + """[[fields]]
name = "item_id"
kind = "categorical"
side = "item"
key_type = "int64"
[[fields]]
name = "item_clicks"
kind = "counter"
side = "item"
by = ["item_id"]
windows = {windows}
statistics = ["rate"]
"""


def bounded(megabytes: int) -> dict[str, str]:
    """Settings under which a Python worker has so many MB, and small parts of a shuffle are put together up to 2."""
    return QUICK_PROCESSES | {
        "spark.sql.shuffle.partitions": "32", "spark.sql.adaptive.advisoryPartitionSizeInBytes": "2m",
        "spark.task.maxFailures": "1", "spark.executor.pyspark.memory": f"{megabytes}m",
        "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system", "spark.executorEnv.MALLOC_ARENA_MAX": "1",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
    }


def write_log(folder: Path) -> None:
    draw = np.random.default_rng(3)
    item = np.where(draw.random(ROWS) < SKEW, 0, draw.integers(1, ITEMS, ROWS))
    micros = np.sort(draw.integers(0, DAYS * 86_400 * 10**6, ROWS)) + int(START.timestamp()) * 10**6
    pq.write_table(pa.table({
        "id": np.arange(ROWS), "user_id": draw.integers(0, 500, ROWS), "item_id": item,
        "time": pa.array(micros, pa.timestamp("us", "UTC")), "clicked": (draw.random(ROWS) < 0.1).astype(np.int64),
    }), folder / "log.parquet")


def features(folder: Path, master: str, name: str, key_rows: int, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Into FOLDER/NAME; a key of more rows than `key_rows` is counted in slices."""
    settings = "\n".join(f'"{key}" = "{value}"' for key, value in bounded(megabytes).items())
    text = CONFIG.format(master=master, settings=settings, most=key_rows, windows=AGES)
    return command(folder, text, name, str(folder))


def told(done: subprocess.CompletedProcess[str]) -> str:
    """How a run ended: content hashes of its examples, or its last line."""
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
    examples = json.loads(done.stdout.splitlines()[-1])["examples"]
    return MADE + " ".join(examples[window]["content_hash"] for window in WINDOWS)


def demonstrate(folder: Path, megabytes: int) -> bool:
    """Prints a line for each way; whether they ended as they should."""
    write_log(folder)
    with cluster(folder, "600m") as master:
        ended = {way: told(features(folder, master, way, key_rows, megabytes))
                 for way, key_rows in (("whole", ROWS), ("sliced", ROWS // 100))}
    ended["embedded"] = told(features(folder, "embedded", "embedded", ROWS // 100, megabytes))
    for way, line in ended.items():
        print(f"{way:9} {line}")
    return TOO_MUCH in ended["whole"] and ended["sliced"] == ended["embedded"] and ended["embedded"].startswith(MADE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(0 if demonstrate(Path(place), int(sys.argv[1]) if len(sys.argv) > 1 else MOST) else 1)
