"""Seconds of the cross search against fields and layers, and over training a DNN on the same rows.

    sluice bench cross_search --rows 1000000 --fields 40 --layers 3 [--values 100]

One epoch of the search (an update of the network and one of the edges per batch) and one of the DNN with its default
layers, on synthetic examples of fields of so many values with equal batches. Prints a Markdown table with the process's
largest memory; the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from contracts.artifacts import LABEL, ROW
from contracts.config.training import Crosses, Train
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from models.cross_search.search import search
from models.examples.window_part import WindowPart
from models.networks import registry
from models.training import fitting

DAYS, ROW_GROUP = 8, 65_536


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--fields", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--values", type=int, default=100, help="of each field")
    arguments = parser.parse_args(argv)
    found = []
    print("| fields | layers | search, s an epoch | rows/s | DNN, s an epoch | factor | memory, MiB |")
    print("|---|---|---|---|---|---|---|")
    for fields in arguments.fields:
        with tempfile.TemporaryDirectory() as folder:
            spec = write(Path(folder), fields, arguments.rows, arguments.values)
            dnn = dnn_seconds(Path(folder), spec)
            for layers in arguments.layers:
                found.append(measured(Path(folder), spec, fields, layers, dnn))
    print(json.dumps(found))


def write(folder: Path, fields: int, rows: int, values: int) -> FeatureSpec:
    """Uniform ids; the label depends on the first two fields together."""
    generator = np.random.default_rng(0)
    named = [FeatureField(name=f"f{i}", kind="categorical", side="user" if i % 2 else "item", vocabulary=f"f{i}",
                          size=values + FIRST_ID) for i in range(fields)]
    for number, part in enumerate(np.array_split(np.arange(rows), DAYS), start=1):
        columns: dict[str, np.ndarray] = {
            field.name: generator.integers(FIRST_ID, field.size, len(part), dtype=np.int32) for field in named}
        rate = 0.03 + 0.1 * ((columns["f0"] % 4 == 0) & (columns["f1"] % 4 == 0))
        columns |= {LABEL: (generator.random(len(part)) < rate).astype(np.float32), ROW: part}
        day = folder / f"day=2026-01-{number:02d}"
        day.mkdir()
        pq.write_table(pa.table(columns), day / "part.parquet", row_group_size=ROW_GROUP)
    return FeatureSpec(fields=tuple(named), has_users=False, has_items=False)


def dnn_seconds(folder: Path, spec: FeatureSpec) -> float:
    """Per epoch over as many rows as the search's updates of the network see."""
    settings = Train(epochs=1, batch_size=Crosses().batch_size)
    fit, holdout = (WindowPart(folder, spec, part, Crosses().holdout_share) for part in ("fit", "holdout"))
    torch.manual_seed(0)
    fitted = fitting.fit(registry.build("dnn", spec, settings), fit, holdout, settings, seed=0)
    return fit.rows / fitted.rows_per_second


def measured(folder: Path, spec: FeatureSpec, fields: int, layers: int, dnn: float) -> dict[str, float]:
    settings = Crosses(layers=layers, epochs=1)
    fit, holdout = (WindowPart(folder, spec, part, settings.holdout_share) for part in ("fit", "holdout"))
    found = search(spec, fit, holdout, ~np.eye(fields, dtype=bool), settings, Train(), seed=0)
    seconds = found.history[0].seconds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {fields} | {layers} | {seconds:.1f} | {found.rows_per_second:,.0f} | {dnn:.1f} | {seconds / dnn:.1f} | "
          f"{memory:.0f} |")
    return {"fields": fields, "layers": layers, "seconds": seconds, "rows_per_second": found.rows_per_second,
            "dnn_seconds": dnn, "factor": seconds / dnn, "memory_mib": memory}


if __name__ == "__main__":
    main()
