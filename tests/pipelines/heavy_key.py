"""A log of which one item has 30% of the events, event-fresh click rates of many windows, and workers of little memory.

A Python worker with the platform imported takes some 300 MB of addresses where Arrow's allocator reserves none ahead,
and may take MOST: less than the light keys need in one task, more than any task needs in parts of 2 MB and slices.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.pipelines.skewed_log import DAYS, LOG, SKEW, START, command
from tests.pipelines.spark_processes import QUICK_PROCESSES

ROWS, ITEMS, MOST = 300_000, 2_000, 420  # MB
SETTINGS = QUICK_PROCESSES | {
    "spark.sql.shuffle.partitions": "32", "spark.task.maxFailures": "1",
    "spark.executor.pyspark.memory": f"{MOST}m", "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
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


def features(folder: Path, master: str, name: str, parts: str) -> subprocess.CompletedProcess[str]:
    """Into FOLDER/NAME; small parts are put together up to `parts`, such as 2m. The heavy key is sliced."""
    chosen = SETTINGS | {"spark.sql.adaptive.advisoryPartitionSizeInBytes": parts}
    settings = "\n".join(f'"{key}" = "{value}"' for key, value in chosen.items())
    text = CONFIG.format(master=master, settings=settings, most=ROWS // 100, windows=WINDOWS)
    return command(folder, text, name, str(folder))
