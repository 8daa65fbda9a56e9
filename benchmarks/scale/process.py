"""One of several processes that train a DNN together: started by benchmarks/scale/scale.py, prints lines of JSON.

Rows a second count whole updates and all reading for them, after WARM others: the clock begins before the first row
group is read, and each process of any number reads its equal share of the same file (scale.py `rows_for`). Bytes are
those that left this process in an update.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from pathlib import Path

import torch

from benchmarks.scale import world as made
from contracts.config.training import Train
from models.distributed import data_parallel
from models.examples.batches import ExampleSet
from models.layers import batch_norm
from models.layers.losses import ClickLoss
from models.layers.own_rows import dealt
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.training.loop import Loop

WARM = 5
HIDDEN, WIDTH = (400, 400, 400), 10


def pin(rank: int, cores: int) -> None:
    """To one of the first `cores` cores that this machine gives."""
    usable = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, {usable[rank % len(usable)]})


def measure(folder: Path, table_rows: int, batch: int, updates: int) -> dict[str, float]:
    """Of this process."""
    settings = Train(hidden=HIDDEN, embedding_dim=WIDTH, batch_size=batch, device="cpu")
    layout = made.spec(table_rows)
    torch.manual_seed(0)
    with dealt(*data_parallel.current()):
        network = registry.build("dnn", layout, settings)
        batch_norm.insert(network)
    train = ExampleSet(folder, layout)
    loop = Loop(ClickLoss(network, PositionBias(0)), [network], settings, 0, 1)
    loop.loss.train()
    warm = losses_of(loop, train, batch, WARM)
    data_parallel.wait_for_all()
    sent, asked = loop.optimisers.bytes_sent, loop.optimisers.rows_looked_up
    begin, processor = time.perf_counter(), time.process_time()
    losses = [*warm, *losses_of(loop, train, batch, updates)]
    data_parallel.wait_for_all()
    seconds = time.perf_counter() - begin
    return {
        "rows_per_second": updates * batch / seconds, "processor_seconds": time.process_time() - processor,
        "seconds": seconds, "bytes_an_update": (loop.optimisers.bytes_sent - sent) / updates,
        "rows_looked_up": (loop.optimisers.rows_looked_up - asked) / updates,
        "dense_numbers": sum(p.numel() for p in loop.optimisers.dense),
        "dense_tensors": len(loop.optimisers.dense), "loss": statistics.mean(losses)}


def losses_of(loop: Loop, train: ExampleSet, batch: int, updates: int) -> list[float]:
    """Of so many updates, by batches of a new pass over the examples."""
    stream = train.batches(batch, shuffle=True, seed=1, rank=loop.world.rank, world=loop.world.size)
    return [float(value) / terms for value, terms in map(loop.step, itertools.islice(stream, updates))]


def report(folder: Path, table_rows: int, batch: int, updates: int, cores: int) -> None:
    """The first process prints a line of JSON for each."""
    pin(int(os.environ.get("RANK", "0")), cores)
    torch.set_num_threads(1)
    world = data_parallel.join(torch.device("cpu"))
    of_all = data_parallel.gathered([measure(folder, table_rows, batch, updates)], world)
    if world.rank == 0:
        print("\n".join(json.dumps(each) for each in of_all), flush=True)
    data_parallel.leave()
