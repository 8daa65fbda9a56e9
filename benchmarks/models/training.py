"""Samples per second of training a DNN 400 x 3, beside the same perceptron on random dense input (the floor).

    python -m benchmarks.models.training [--rows 200000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
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

HIDDEN, BATCH = (400, 400, 400), 4096


def floor(width: int, steps: int = 20) -> float:
    """Plain torch: perceptron, log loss, fused Adam; no data, no embeddings."""
    layers: list[nn.Module] = []
    for before, after in zip((width, *HIDDEN), HIDDEN, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(HIDDEN[-1], 1))
    adam = torch.optim.Adam(network.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, width), torch.rand(BATCH).round()
    start = 0.0
    for step in range(steps + 2):
        if step == 2:
            start = time.perf_counter()
        adam.zero_grad()
        F.binary_cross_entropy_with_logits(network(inputs).squeeze(1), labels).backward()
        adam.step()
    return steps * BATCH / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    settings = Train(hidden=HIDDEN, batch_size=BATCH, epochs=2, patience=2, dropout=0.0, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        layout = spec()
        train = ExampleSet(write(Path(folder) / "train", layout, rows), layout)
        validation = ExampleSet(write(Path(folder) / "validation", layout, BATCH), layout)
        network = registry.build("dnn", layout, settings)
        reached = training_loop.fit(network, train, validation, settings, seed=0).rows_per_second
    assert isinstance(network, Dnn)
    plain = floor(network.embedding.request.width + network.embedding.candidate.width)
    print(f"DNN 400x3, reading and embeddings  {reached:10,.0f} samples/s   {reached / plain:.2f} of the floor")
    print(f"plain torch, same layers           {plain:10,.0f} samples/s")


if __name__ == "__main__":
    main()
