"""Samples per second of training a DNN 400 x 3, beside the same MLP on random dense input (the floor).

    sluice bench training [--rows 200000] [--batch 4096]

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.models.batches import spec, write
from contracts.config.training import Train
from models.examples.batches import ExampleSet
from models.networks import registry
from models.networks.dnn import Dnn
from models.training import loop as training_loop

HIDDEN = (400, 400, 400)


def floor(width: int, batch: int, updates: int = 20) -> float:
    """Plain torch: MLP, log loss, fused Adam; no data, no embeddings."""
    layers: list[nn.Module] = []
    for before, after in zip((width, *HIDDEN), HIDDEN, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(HIDDEN[-1], 1))
    adam = torch.optim.Adam(network.parameters(), fused=True)
    inputs, labels = torch.randn(batch, width), torch.rand(batch).round()
    start = 0.0
    for number in range(updates + 2):
        if number == 2:
            start = time.perf_counter()
        adam.zero_grad()
        F.binary_cross_entropy_with_logits(network(inputs).squeeze(1), labels).backward()
        adam.step()
    return updates * batch / (time.perf_counter() - start)


def measure(rows: int, batch: int) -> dict[str, float]:
    """Samples per second through reading, embeddings and network, and through the floor."""
    settings = Train(hidden=HIDDEN, batch_size=batch, epochs=2, patience=2, dropout=0.0, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        layout = spec()
        train = ExampleSet(write(Path(folder) / "train", layout, rows), layout)
        validation = ExampleSet(write(Path(folder) / "validation", layout, batch), layout)
        network = registry.build("dnn", layout, settings)
        reached = training_loop.fit(network, train, validation, settings, seed=0).rows_per_second
    assert isinstance(network, Dnn)
    return {"dnn": reached, "floor": floor(network.embedding.request.width + network.embedding.candidate.width, batch)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=4096)
    arguments = parser.parse_args(argv)
    reached = measure(arguments.rows, arguments.batch)
    ratio = reached["dnn"] / reached["floor"]
    print(f"DNN 400x3, reading and embeddings  {reached['dnn']:10,.0f} samples/s   {ratio:.2f} of the floor")
    print(f"plain torch, same layers           {reached['floor']:10,.0f} samples/s")
    print(json.dumps(reached))


if __name__ == "__main__":
    main()
