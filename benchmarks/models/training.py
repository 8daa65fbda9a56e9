"""Samples per second of training a DNN as rankers are compared, beside its matrix products alone (the floor).

    sluice bench training [--rows 100000] [--batch 4096] [--rounds 5] [--threads 2] [--precisions fp32 bf16]

Ten fields of width 10 with skewed ids, 3 x 400 units, batch normalisation, dropout 0.2, popularity, unknown ids,
clipping; reading is included, evaluation is not. In turns with it, in the same precision:

    floor   linear layers and ReLU on dense inputs that lie ready, with gradients of the inputs and clipping, by the
            same products (models/layers/linear.py) and AdamW: no reading, embeddings, normalisation or dropout
    plain   the same layers of plain torch with its batch normalisation and dropout, in float32

Medians over the rounds; the last line is JSON. Without --precisions bf16 is measured where the processor multiplies it
in hardware; elsewhere it takes twenty times as long.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.nn import functional as F

from contracts.artifacts import LABEL, ROW, USER
from contracts.config.training import Train
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from models.examples.batches import ExampleSet
from models.layers.linear import Linear
from models.networks import registry
from models.training import fitting
from models.training.precision import PRECISIONS, fast_precisions

HIDDEN, DROPOUT = (400, 400, 400), 0.2
FIELDS, WIDTH, VALUES, SKEW = 10, 10, 2000, 1.2
Figures = dict[str, list[float]]


def layers(linear: type[nn.Linear], normalised: bool) -> nn.Sequential:
    """The MLP of the comparison; `normalised` with batch normalisation and dropout."""
    found: list[nn.Module] = []
    for before, after in zip((FIELDS * WIDTH, *HIDDEN), HIDDEN, strict=False):
        norm = [nn.BatchNorm1d(after)] if normalised else []
        found += [linear(before, after), *norm, nn.ReLU(), *([nn.Dropout(DROPOUT)] if normalised else [])]
    return nn.Sequential(*found, linear(HIDDEN[-1], 1))


def dense_rate(network: nn.Module, precision: str, batch: int, updates: int) -> float:
    """Samples a second of `updates` steps on inputs that lie ready, after two that do not count."""
    adam = torch.optim.AdamW(network.parameters(), fused=True)
    inputs, labels = torch.randn(batch, FIELDS * WIDTH, requires_grad=True), torch.rand(batch).round()
    start = 0.0
    for number in range(updates + 2):
        if number == 2:
            start = time.perf_counter()
        adam.zero_grad()
        inputs.grad = None
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = network(inputs).squeeze(1)
        F.binary_cross_entropy_with_logits(logits.float(), labels).backward()
        torch.nn.utils.clip_grad_norm_([*network.parameters(), inputs], 10.0)
        adam.step()
    return updates * batch / (time.perf_counter() - start)


def write(folder: Path, rows: int) -> ExampleSet:
    """Examples of FIELDS categorical fields of both sides whose values' frequencies fall as rank^-SKEW."""
    random = np.random.default_rng(0)
    fields = [FeatureField(name=f"c{i}", kind="categorical", side="item" if i % 2 else "user", size=VALUES + FIRST_ID)
              for i in range(FIELDS)]
    weights = np.arange(1, VALUES + 1) ** -SKEW
    columns: dict[str, np.ndarray] = {
        field.name: random.choice(VALUES, rows, p=weights / weights.sum()).astype(np.int32) + FIRST_ID
        for field in fields}
    columns[LABEL] = (random.random(rows) < 0.1).astype(np.float64)
    columns[USER] = columns[ROW] = np.arange(rows)
    day = folder / "day=2026-01-05"
    day.mkdir(parents=True)
    pq.write_table(pa.table(columns), day / "part-00000.parquet", row_group_size=131_072)
    return ExampleSet(folder, FeatureSpec(fields=tuple(fields)))


def ranker_rate(train: ExampleSet, validation: ExampleSet, precision: str, batch: int) -> float:
    """Of two epochs of the DNN."""
    settings = Train(hidden=HIDDEN, embedding_dim=WIDTH, dropout=DROPOUT, batch_size=batch, epochs=2, patience=2,
                     precision=precision, device="cpu")  # type: ignore[arg-type]
    network = registry.build("dnn", train.spec, settings)
    return fitting.fit(network, train, validation, settings, seed=0).rows_per_second


def measure(rows: int, batch: int, rounds: int, precisions: Sequence[str], updates: int = 20) -> Figures:
    """Name -> samples a second of each round."""
    found: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        train, validation = write(Path(folder, "train"), rows), write(Path(folder, "validation"), batch)
        runs: dict[str, Callable[[], float]] = {}
        for precision in precisions:
            runs[f"dnn_{precision}"] = lambda p=precision: ranker_rate(train, validation, p, batch)  # type: ignore[misc]
            runs[f"floor_{precision}"] = lambda p=precision: dense_rate(  # type: ignore[misc]
                layers(Linear, normalised=False), p, batch, updates)
        runs["plain"] = lambda: dense_rate(layers(nn.Linear, normalised=True), "fp32", batch, updates)
        for _ in range(rounds):
            for name, run in runs.items():
                found.setdefault(name, []).append(run())
    return found


def said(found: Mapping[str, Sequence[float]]) -> str:
    """A line a figure, with the lowest and highest of its rounds."""
    lines = []
    for name, rates in found.items():
        line = f"{name:11s} {statistics.median(rates):10,.0f} samples/s ({min(rates):,.0f} to {max(rates):,.0f})"
        if name.startswith("dnn"):
            floor = statistics.median(found[name.replace("dnn", "floor")])
            line += f", {statistics.median(rates) / floor:.2f} of the floor"
        lines.append(line)
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS)
    asked = parser.parse_args(argv)
    torch.set_num_threads(asked.threads)
    precisions = asked.precisions or fast_precisions(torch.device("cpu"))
    found = measure(asked.rows, asked.batch, asked.rounds, precisions)
    print(said(found))
    print(json.dumps({name: statistics.median(rates) for name, rates in found.items()}))


if __name__ == "__main__":
    main()
