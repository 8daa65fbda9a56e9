"""What a task does with 300 thousand event-fresh impressions of one key, in a process that may take 60 MiB more.

    python counts_in_little_memory.py whole | sliced

Prints how many queries were answered.
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from contracts.features.event_clock import SECOND, Measure
from pipelines.features.measures import ENTERED, MOMENT, QUERY, ROWS, changes_at
from pipelines.features.running_counters import counted
from pipelines.features.sliced_counters import PLACE, SLICE, SLICE_WIDTH, within_slices

IMPRESSIONS, MORE, DAY = 300_000, 60 << 20, 86_400
MEASURES = tuple(Measure("shown", days * DAY) for days in range(1, 9))
AT = np.arange(IMPRESSIONS) * (10 * DAY * SECOND // IMPRESSIONS)


def whole() -> int:
    """As of `_whole_counts`: all of the key at once."""
    columns = {name: pa.array(AT + 1) for name in changes_at(MEASURES)}
    others = {ENTERED: np.full(IMPRESSIONS, 2 ** len(MEASURES) - 1), ROWS: np.ones(IMPRESSIONS, np.int64), MOMENT: AT}
    table = pa.table({"key": pa.array(["heavy"]).take(pa.array(np.zeros(IMPRESSIONS, np.int64))), **columns, **others})
    return counted(table, np.zeros(IMPRESSIONS, np.int64), ("key",), MEASURES).num_rows


def sliced() -> int:
    """As of `sliced_counts`: the entries and queries of an hour after those of another."""
    answered = 0
    slices = AT // SLICE_WIDTH
    for number in np.unique(slices):
        at = AT[slices == number]
        asks = np.repeat([False, True], len(at))
        table = pa.table({
            "key": pa.array(["heavy"] * 2 * len(at)), SLICE: np.full(2 * len(at), number * SLICE_WIDTH),
            MOMENT: np.tile(at, 2), QUERY: asks, PLACE: np.zeros(2 * len(at), np.int32),
            ENTERED: np.full(2 * len(at), 2 ** len(MEASURES) - 1), ROWS: np.ones(2 * len(at), np.int64),
        })
        answered += within_slices(table, np.zeros(2 * len(at), np.int64), ("key", SLICE), MEASURES).num_rows
    return answered


if __name__ == "__main__":
    found = re.search(r"VmSize:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found
    most = int(found[1]) * 1024 + MORE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print({"whole": whole, "sliced": sliced}[sys.argv[1]]())
