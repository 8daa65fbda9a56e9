"""Rows per second of reading encoded examples, beside a plain pyarrow read of the same columns (the floor).

    sluice bench batches [--rows 1000000]

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.examples.batches import ExampleSet

CATEGORICAL, NUMERIC, HISTORY, BATCH = 30, 9, 10, 4096


def spec() -> FeatureSpec:
    """30 categorical slots, 9 dense ones and a history of 10: 40 slots of 49 columns."""
    fields = [FeatureField(name=f"c{i}", kind="categorical", side="item" if i % 2 else "user", size=1000 * (i + 1))
              for i in range(CATEGORICAL)]
    fields += [FeatureField(name=f"n{i}", kind="numeric", side="item" if i % 2 else "user") for i in range(NUMERIC)]
    fields.append(FeatureField(name="history", kind="sequence", side="user", of="c1", vocabulary="c1", size=2000,
                               length=HISTORY))
    return FeatureSpec(fields=tuple(fields))


def write(folder: Path, layout: FeatureSpec, rows: int) -> Path:
    random = np.random.default_rng(0)
    columns: dict[str, pa.Array] = {}
    for field in layout.fields:
        if field.dense:
            columns[field.name] = pa.array(random.normal(size=rows))
            continue
        ids = pa.array(random.integers(0, field.size, rows * field.length, dtype=np.int32))
        columns[field.name] = ids if field.length == 1 else pa.FixedSizeListArray.from_arrays(ids, field.length)
    columns["_label"] = pa.array((random.random(rows) < 0.035).astype(np.float64))
    columns["_user"] = columns["_row"] = pa.array(np.arange(rows))
    (folder / "day=2026-01-05").mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "day=2026-01-05" / "part-00000.parquet", row_group_size=131_072)
    return folder


def rate(rows: int, read: Callable[[], object], rounds: int = 3) -> float:
    """Rows per second of CPU time, best of `rounds`, files warm."""
    read()
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        read()
        seconds.append(time.process_time() - start)
    return rows / min(seconds)


def measure(rows: int) -> dict[str, float]:
    """Rows per second and core: batches in file order, shuffled, and the floor."""
    with tempfile.TemporaryDirectory() as folder:
        layout = spec()
        path = write(Path(folder), layout, rows)
        examples = ExampleSet(path, layout)
        return {
            "in_order": rate(rows, lambda: sum(1 for _ in examples.batches(BATCH))),
            "shuffled": rate(rows, lambda: sum(1 for _ in examples.batches(BATCH, shuffle=True))),
            "floor": rate(rows, lambda: [pq.read_table(file) for file in path.glob("day=*/*.parquet")]),
        }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    reached = measure(parser.parse_args(argv).rows)
    for name, what in (("in_order", "batches in file order"), ("shuffled", "batches shuffled")):
        share = reached[name] / reached["floor"]
        print(f"{what:21s} {reached[name]:12,.0f} rows/s per core   {share:.2f} of the floor")
    print(f"plain pyarrow read    {reached['floor']:12,.0f} rows/s per core")
    print(json.dumps(reached))


if __name__ == "__main__":
    main()
