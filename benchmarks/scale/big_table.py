"""A table too large for comfort: memory, rows a second, bytes of an update and on disk, time to take it up again.

    sluice bench big_table [--rows 20000000] [--width 16] [--updates 200] [--batch 4096] [--processes 1]
                           [--resume-with 2] [--json]

`--processes` train a DNN of one layer over a table of `rows` vectors, dealt to them from the start, as `sluice train`
does (one second moment a row, models/optimisation/row_adam.py), keep its weights as those of a best epoch and write a
checkpoint; then `--resume-with` processes take it up and make one update. Arithmetic of all training processes
together, bytes a row of D numbers:

    weight 4 D + mean 4 D + second moment 4 + count 4 + place of a batch's rows 4         140 at D = 16

and the best weights' 4 D in a file, which memory holds as far as it has room. The goal: 100 million rows of 16 in
24 GB. `memory_bytes` is what is resident after training without the pages of files, `peak_bytes` the most that was
resident until then (in the second part with the pages of the files read), both of all processes; bytes of an update are
those of scale.py. TMPDIR says where the files lie.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.scale import world as made
from benchmarks.scale.scale import expected_bytes
from contracts.config.training import Train
from models.distributed import data_parallel
from models.distributed.kept_tensor import kept_copy
from models.distributed.run_checkpoint import Progress, RunCheckpoint
from models.layers.losses import ClickLoss
from models.layers.own_rows import dealt
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.training.loop import Loop
from models.training.run_state import RunState

Figures = dict[str, float]
KEPT_BYTES = 12  # of a row beside weight and mean: second moment, count, place


def memory(name: str) -> int:
    """Bytes of this process, by /proc: RssAnon without pages of files now, VmHWM the most that were resident."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name))


def started(rows: int, width: int, batch: int) -> Loop:
    """A network and all that trains it."""
    settings = Train(hidden=(64,), embedding_dim=width, batch_size=batch, device="cpu", second_moment="row")
    torch.manual_seed(0)
    with dealt(*data_parallel.current()):
        network = registry.build("dnn", made.spec(rows), settings)
    loop = Loop(ClickLoss(network, PositionBias(0)), [network], settings, 0, 1)
    loop.loss.train()
    return loop


def train(folder: Path, rows: int, width: int, batch: int, updates: int) -> Figures:
    """Builds, trains, keeps the weights, writes a checkpoint; each process of those that torchrun started."""
    begin = time.perf_counter()
    loop = started(rows, width, batch)
    world, moved = loop.world, loop.optimisers
    built = time.perf_counter()
    stream = made.batches(made.spec(rows), batch // world.size, updates, seed=world.rank)
    losses = [float(value) / terms for value, terms in map(loop.step, stream)]
    trained, anonymous, peak = time.perf_counter(), memory("RssAnon"), memory("VmHWM")
    best = {name: kept_copy(tensor, folder=folder) for name, tensor in loop.loss.state_dict().items()}
    kept = RunCheckpoint(folder / "checkpoints", 0.0, {"run": "big"})
    data_parallel.wait_for_all()
    saved = time.perf_counter()
    kept.write(Progress(batch=updates), RunState(loop.loss, moved, world).of(best), world)
    size = sum(path.stat().st_size for path in (folder / "checkpoints").rglob("*") if path.is_file())
    said = {"rows_looked_up": moved.rows_looked_up / updates, "dense_tensors": float(len(moved.dense)),
            "dense_numbers": float(sum(p.numel() for p in moved.dense))}
    of_all = data_parallel.total([anonymous, peak], torch.device("cpu"), world)
    return {"rows": rows, "processes": world.size, "build_seconds": built - begin, "train_seconds": trained - built,
            "rows_per_second": updates * (batch // world.size) * world.size / (trained - built), "loss": losses[-1],
            "bytes_an_update": moved.bytes_sent / updates, "bytes_by_arithmetic": expected_bytes(
                world.size, said, width), "checkpoint_seconds": time.perf_counter() - saved, "checkpoint_bytes": size,
            "memory_bytes": of_all[0], "peak_bytes": of_all[1],
            "memory_by_arithmetic": rows * (8.0 * width + KEPT_BYTES)}


def take_up(folder: Path, rows: int, width: int, batch: int) -> Figures:
    """In as many processes as torchrun started: the checkpoint, and one update."""
    begin = time.perf_counter()
    loop = started(rows, width, batch)
    built = time.perf_counter()
    kept = RunCheckpoint(folder / "checkpoints", 0.0, {"run": "big"}, resume=True)
    best: dict[str, torch.Tensor] = {}
    found = RunState(loop.loss, loop.optimisers, loop.world).take_up(kept, best, 0)
    read = time.perf_counter()
    value, terms = loop.step(next(made.batches(made.spec(rows), batch // loop.world.size, 1, seed=loop.world.rank + 7)))
    of_all = data_parallel.total([memory("RssAnon"), memory("VmHWM")], torch.device("cpu"), loop.world)
    return {"updates_before": found.batch, "build_seconds": built - begin, "read_seconds": read - built,
            "loss": float(value) / terms, "memory_bytes": of_all[0], "peak_bytes": of_all[1],
            "processes": loop.world.size}


def measure(rows: int, width: int, batch: int, updates: int, processes: int, resume_with: int) -> dict[str, Figures]:
    """Both parts in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        common = [folder, "--rows", str(rows), "--width", str(width), "--batch", str(batch), "--updates", str(updates)]
        trained = _in_processes(processes, ["--part", "train", *common])
        resumed = _in_processes(resume_with, ["--part", "take_up", *common])
    return {"train": trained, "take_up": resumed}


def _in_processes(count: int, arguments: list[str]) -> Figures:
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"] if count > 1 else []
    command = [sys.executable, *launch, "-m", "benchmarks.scale.big_table", *arguments]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))  # type: ignore[no-any-return]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=["train", "take_up"], help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1, help="that train")
    parser.add_argument("--resume-with", type=int, default=2, help="processes that take the checkpoint up")
    parser.add_argument("--json", action="store_true", help="the last line is JSON alone")
    asked = parser.parse_args(argv)
    if asked.part is None:
        found = measure(asked.rows, asked.width, asked.batch, asked.updates, asked.processes, asked.resume_with)
        if not asked.json:
            for part, figures in found.items():
                print(part, ", ".join(f"{name} {value:,.4g}" for name, value in figures.items()))
        print(json.dumps(found))
        return
    data_parallel.join(torch.device("cpu"))
    if asked.part == "train":
        made_figures = train(asked.folder, asked.rows, asked.width, asked.batch, asked.updates)
    else:
        made_figures = take_up(asked.folder, asked.rows, asked.width, asked.batch)
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps(made_figures), flush=True)
    data_parallel.leave()


if __name__ == "__main__":
    main()
