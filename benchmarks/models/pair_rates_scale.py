"""Pre-training of pair rates at scale, on a graph drawn at random: seconds, pairs a second, memory.

    sluice bench statistics_scale [--nodes 1000000] [--edges 20000000] [--batches 100]

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contracts.config.training import PairRates
from contracts.features.pair_graph import Relation
from models.distributed.run_checkpoint import RunCheckpoint
from models.distributed.world import ALONE
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining as pair_pretraining
from models.pair_rates.graph import PairGraph


def synthetic(nodes: int, edges: int, seed: int = 0) -> PairGraph:
    """Two large slots and an attribute of each; values as skewed as 1 / rank; few pairs repeat."""
    random = np.random.default_rng(seed)
    half, groups = nodes // 2 - 1000, 1000
    slots = {"user": half, "item": half, "user_group": groups, "item_group": groups}
    relations = [Relation("user", "item", "pair"), Relation("user", "user_group", "link"),
                 Relation("item", "item_group", "link")]
    pairs = edges - 2 * half
    ends = [np.minimum((half ** random.random(pairs)).astype(np.int64), half - 1) for _ in range(2)]
    both = np.concatenate([ends[0], np.arange(half), np.arange(half)])
    right = np.concatenate([ends[1], np.arange(half) % groups, np.arange(half) % groups])
    relation = np.repeat([0, 1, 2], [pairs, half, half])
    shown = random.geometric(0.5, len(both))
    return PairGraph.of(slots, relations, relation, both, right, shown, random.binomial(shown, 0.05), shown)


def at_scale(nodes: int, edges: int, batches: int | None) -> dict[str, Any]:
    """An epoch of pre-training, or its first batches, as `sluice pretrain` runs it, then its end: held-out loss,
    checkpoint, all vectors. Seconds by the clock and of the processor: on a busy machine these two are far apart."""
    settings, clock = PairRates(batch_size=4096), Clock()
    graph = synthetic(nodes, edges)
    clock.lap("draw the graph")
    torch.manual_seed(0)
    network = pair_network.build(settings, graph)
    run = pair_pretraining.PretrainRun(network, graph, settings, 0)
    entries = sum(len(one.edges) for incoming in run.graph.incoming for one in incoming)
    clock.lap("index it")
    run.epoch(pair_pretraining.PretrainProgress(), lambda done, every: _tell(done, batches or every),
              most_batches=batches)
    seconds, processor = clock.lap("train")
    trained = min(len(run.train), (batches or len(run.train)) * settings.batch_size)
    found = {
        "nodes": graph.nodes, "edges": len(graph.edges.relation), "pairs to train on": len(run.train),
        "entries of neighbour lists": entries, "threads": torch.get_num_threads(), "pairs trained on": trained,
        "share of an epoch": trained / len(run.train), "pairs per second": trained / seconds,
        "pairs per processor second": trained / processor, "hours per epoch": len(run.train) / trained * seconds / 3600,
    }
    run.end(1, 0.0, run.evaluate(), seconds)
    clock.lap("predict held-out pairs")
    with tempfile.TemporaryDirectory() as folder:
        state = run.state(torch.Generator())
        RunCheckpoint(Path(folder), 0.0, {}).write(pair_pretraining.PretrainProgress(), state, ALONE)
    clock.lap("write a checkpoint")
    network.encoder.all_vectors(graph)  # type: ignore[operator]
    clock.lap("make all vectors")
    found["held-out loss"] = run.history[-1].validation_loss
    return {**found, **clock.spent, "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def _tell(done: int, batches: int) -> None:
    if done % 100 == 0:
        print(f"{done} of {batches} batches", file=sys.stderr, flush=True)


class Clock:
    """Seconds since the last lap, by the clock and of the processor."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._last = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> tuple[float, float]:
        now = (time.perf_counter(), time.process_time())
        seconds, processor = now[0] - self._last[0], now[1] - self._last[1]
        self.spent |= {f"seconds to {name}": seconds, f"processor seconds to {name}": processor}
        self._last = now
        return seconds, processor


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--batches", type=int, help="of 4096 pairs; without it a whole epoch")
    chosen = parser.parse_args(argv)
    found = at_scale(chosen.nodes, chosen.edges, chosen.batches)
    print("\n".join(f"{name:44s} {value:,.4g}" for name, value in found.items()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
