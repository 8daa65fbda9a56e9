"""One tracked run per trained model: settings at its start, losses per epoch, files at its end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from contracts.features.feature_spec import SPEC_FILE
from models.jobs.training_task import TrainingTask
from models.tracking.tracking import TrackedRun
from models.training.loop import OnEpoch


def start_run(task: TrainingTask, name: str) -> TrackedRun:
    """With the settings that the weights depend on."""
    config = task.config
    return task.tracker.start(name, {
        "model": name, "seed": task.seed, "data": config.name, "data_version": config.version,
        "train": config.train.model_dump(mode="json"),
    })


def log_epochs(run: TrackedRun) -> OnEpoch:
    """What `fitting.fit` calls after each epoch."""
    return lambda epoch: run.metrics(epoch.model_dump(exclude={"epoch"}), epoch.epoch)


def end_run(task: TrainingTask, run: TrackedRun, files: Iterable[Path]) -> None:
    """With those of the files that exist, and the feature spec."""
    for path in (*files, task.out.encoding / SPEC_FILE):
        if path.exists():
            run.artifact(path)
    run.end()
