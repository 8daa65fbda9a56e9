"""A log of which one item has 30% of the events, event-fresh click rates of many windows, and workers of little memory.

A task that holds the key whole has 90 thousand rows of the 22 times of 40 measures, and as much again of what it makes
of them, about 95 MB; an hour of the key is 375 impressions. A Python worker with the platform imported takes 350 MB of
addresses where Arrow's allocator reserves none ahead, and may take ROOM more. Small parts are put together up to 2 MB
alone, or else the other keys would be one task.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.pipelines.skewed_log import DAYS, LOG, SKEW, START, command
from tests.pipelines.spark_processes import QUICK_PROCESSES

ROWS, ITEMS, ROOM = 300_000, 2_000, 70  # MB
SETTINGS = QUICK_PROCESSES | {
    "spark.sql.shuffle.partitions": "32", "spark.sql.adaptive.advisoryPartitionSizeInBytes": "2m",
    "spark.task.maxFailures": "1",
    "spark.executor.pyspark.memory": f"{350 + ROOM}m", "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_ARENA_MAX": "1", "spark.executorEnv.OMP_NUM_THREADS": "1",
}
WINDOWS = [f"{hours}h" for hours in range(6, 126, 6)]
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


def write_log(folder: Path) -> None:
    draw = np.random.default_rng(3)
    item = np.where(draw.random(ROWS) < SKEW, 0, draw.integers(1, ITEMS, ROWS))
    micros = np.sort(draw.integers(0, DAYS * 86_400 * 10**6, ROWS)) + int(START.timestamp()) * 10**6
    pq.write_table(pa.table({
        "id": np.arange(ROWS), "user_id": draw.integers(0, 500, ROWS), "item_id": item,
        "time": pa.array(micros, pa.timestamp("us", "UTC")), "clicked": (draw.random(ROWS) < 0.1).astype(np.int64),
    }), folder / "log.parquet")


def features(folder: Path, master: str, name: str, most: int) -> subprocess.CompletedProcess[str]:
    """Into FOLDER/NAME; a key of more than `most` rows is sliced."""
    settings = "\n".join(f'"{key}" = "{value}"' for key, value in SETTINGS.items())
    text = CONFIG.format(master=master, settings=settings, most=most, windows=WINDOWS)
    return command(folder, text, name, str(folder))
