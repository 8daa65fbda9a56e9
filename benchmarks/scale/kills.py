"""Training that loses a process again and again: is its loss curve that of an undisturbed run, and what did it cost?

    sluice bench kills [--kills 10] [--processes 2] [--rows 200000] [--epochs 5] [--checkpoint-seconds 2] [--json]

torchrun starts the processes, and all of them anew when one dies; they take up the newest checkpoint. Whenever training
goes on again, one of them, drawn at random, gets SIGKILL after a time drawn evenly from 0 to SPAN seconds, which may be
within a batch, an exchange or the writing of a checkpoint. Nothing is drawn in training but the order of rows, so that
losses of the epochs, in training and on validation, must be those of the undisturbed run but for the order of sums:
`difference` is the largest, TOLERANCE the most that is right. `batches` were done, `needed` had been enough.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.scale import world as made
from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.distributed import data_parallel
from models.distributed.run_checkpoint import RunCheckpoint
from models.examples.batches import ExampleSet
from models.layers.own_rows import dealt
from models.networks import registry
from models.training import fitting

TABLE_ROWS, BATCH, SPAN, TOLERANCE = 100_000, 512, 3.0, 1e-4
Figures = dict[str, float]


def train(folder: Path, epochs: int, checkpoint_seconds: float) -> None:
    """In each process that torchrun started; the first writes losses.json, and a line for every batch."""
    spec, world = FeatureSpec.read(folder), data_parallel.join(torch.device("cpu"))
    settings = Train(hidden=(32,), embedding_dim=8, batch_size=BATCH, device="cpu", epochs=epochs, patience=epochs,
                     batch_norm=False, unknown_ids=False, dropout=0.0)
    torch.manual_seed(0)
    with dealt(*world):
        network = registry.build("dnn", spec, settings)

    def note(batch: int, _: int) -> None:
        if world.rank == 0:
            with (folder / "batches").open("a", encoding="utf-8") as file:
                file.write(f"{batch}\n")

    result = fitting.fit(
        network, ExampleSet(folder / "train", spec), ExampleSet(folder / "validation", spec), settings, 0,
        on_batch=note, kept=RunCheckpoint(folder / "kept", checkpoint_seconds, {"run": "kills"}, resume=True))
    losses = [[epoch.train_loss, epoch.validation_loss] for epoch in result.history]
    data_parallel.by_first(lambda: (folder / "losses.json").write_text(json.dumps(losses)))
    data_parallel.leave()


def children(parent: int) -> list[int]:
    """Processes that it started, by /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def run(folder: Path, processes: int, epochs: int, checkpoint_seconds: float, kills: int, seed: int) -> Figures:
    """One run from its start, with so many kills, or as many as there was time for."""
    shutil.rmtree(folder / "kept", ignore_errors=True)
    (folder / "batches").write_text("", encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}",
               f"--max-restarts={kills}", "--monitor-interval=0.1", "-m", "benchmarks.scale.kills", "--folder",
               str(folder), "--epochs", str(epochs), "--checkpoint-seconds", str(checkpoint_seconds)]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    begin = time.perf_counter()
    with (folder / "log").open("wb") as log, subprocess.Popen(command, env=environment, stderr=log) as agent:
        done = _kill(agent, folder / "batches", processes, kills, random.Random(seed))
    if agent.returncode:
        raise SystemExit(f"training ended with {agent.returncode}: {(folder / 'log').read_text()[-2000:]}")
    return {"kills": done, "seconds": time.perf_counter() - begin,
            "batches": float(len((folder / "batches").read_text(encoding="utf-8").split()))}


def _kill(agent: subprocess.Popen[bytes], batches: Path, processes: int, kills: int, chance: random.Random) -> int:
    """Returns how many were killed by the time that training ended."""
    done, size, due = 0, 0, float("inf")
    while agent.poll() is None:
        time.sleep(0.02)
        if done == kills:
            continue
        if batches.stat().st_size > size and due == float("inf"):
            due = time.monotonic() + chance.uniform(0.0, SPAN)
        victims = children(agent.pid) if time.monotonic() >= due else []
        if len(victims) == processes:
            os.kill(chance.choice(victims), signal.SIGKILL)
            done, size, due = done + 1, batches.stat().st_size, float("inf")
    return done


def measure(rows: int, processes: int, epochs: int, checkpoint_seconds: float, kills: int, seed: int) -> Figures:
    """The undisturbed run, then that with kills."""
    with tempfile.TemporaryDirectory() as name:
        folder, losses = Path(name), []
        layout = made.spec(TABLE_ROWS)
        layout.write(folder)
        made.write(folder / "train", layout, rows)
        made.write(folder / "validation", layout, rows // 10, seed=1)
        found = []
        for count in (0, kills):
            found.append(run(folder, processes, epochs, checkpoint_seconds, count, seed))
            losses.append(torch.tensor(json.loads((folder / "losses.json").read_text(encoding="utf-8"))))
    calm, disturbed = found
    same = losses[0].shape == losses[1].shape
    return {**disturbed, "needed": calm["batches"], "undisturbed_seconds": calm["seconds"],
            "epochs": float(len(losses[0])),
            "difference": float((losses[0] - losses[1]).abs().max()) if same else float("inf")}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--checkpoint-seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0, help="of the moments and the processes that die")
    parser.add_argument("--json", action="store_true", help="the last line is JSON alone")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.folder:
        train(asked.folder, asked.epochs, asked.checkpoint_seconds)
        return
    found = measure(asked.rows, asked.processes, asked.epochs, asked.checkpoint_seconds, asked.kills, asked.seed)
    print(json.dumps(found) if asked.json else ", ".join(f"{name} {value:,.4g}" for name, value in found.items()))
    if found["kills"] < asked.kills:
        print(f"training ended after {found['kills']:.0f} kills: ask for more --rows or --epochs", file=sys.stderr)
    if found["difference"] > TOLERANCE:
        raise SystemExit(f"the curves differ by {found['difference']:.2g}, more than {TOLERANCE:g}")


if __name__ == "__main__":
    main()
