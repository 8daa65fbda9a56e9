"""Trains what `sluice train` trains in forks that are told to end, or killed, in the middle: `interrupted.py OUT`.

OUT/whole is trained undisturbed. OUT/broken is trained on from checkpoint to checkpoint, a fork for every interruption.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import OnProgress
from models.jobs.ranker_training import train_ranker
from models.jobs.retrieval_training import train_retrieval
from models.jobs.training_task import TrainingTask
from models.tracking.tracking import Tracker

# Of each fork: the model and its n-th batch in this fork, the signal, minutes between checkpoints.
INTERRUPTIONS = (
    ("dnn", 4, signal.SIGTERM, 60.0),
    ("dnn", 7, signal.SIGKILL, 1e-9),
    ("dnn", 6, signal.SIGTERM, 60.0),
    ("dnn", 18, signal.SIGKILL, 1e-9),
    ("two_tower", 3, signal.SIGKILL, 1e-9),
    ("two_tower", 2, signal.SIGTERM, 60.0),
    ("pre_ranker", 2, signal.SIGTERM, 60.0),
    ("pre_ranker", 7, signal.SIGKILL, 1e-9),
)


LAZY = ("matplotlib.pyplot", "pandas", "sklearn.linear_model", "torch._dynamo")  # imported by training as it goes


def train(out: Path, minutes: float, resume: bool, on_progress: OnProgress) -> None:
    """What is finished is kept, the rest goes on where its checkpoint is."""
    config = Config.model_validate_json((out / "config.json").read_text(encoding="utf-8"))
    config = config.model_copy(update={"train": config.train.model_copy(update={"checkpoint_minutes": minutes})})
    artifacts = Artifacts(out)
    task = TrainingTask(
        config=config,
        out=artifacts,
        spec=FeatureSpec.read(artifacts.encoding),
        seed=3,
        force=False,
        resume=resume,
        tracker=Tracker(out, "tiny", silent=True),
        on_progress=on_progress,
    )
    train_ranker(task, "dnn")
    train_retrieval(task)


def in_fork(action: Callable[[], None]) -> int:
    """Its exit status, negative where a signal ended it; what it raised is printed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def interrupted(out: Path, model: str, n: int, kind: signal.Signals, minutes: float) -> None:
    seen = 0

    def count(name: str, done: int, batches: int) -> None:
        nonlocal seen
        seen += name == model
        if name == model and seen == n:
            os.kill(os.getpid(), kind)

    train(out, minutes, True, count)


def main(out: Path) -> None:
    torch.set_num_threads(1)
    for name in LAZY:  # once, and not in every fork
        importlib.import_module(name)
    print(in_fork(lambda: train(out / "whole", 0.0, False, lambda *_: None)), flush=True)
    for one in INTERRUPTIONS:
        print(in_fork(lambda one=one: interrupted(out / "broken", *one)), flush=True)  # type: ignore[misc]
    print(in_fork(lambda: train(out / "broken", 60.0, True, lambda *_: None)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
