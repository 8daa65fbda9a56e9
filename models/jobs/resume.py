"""Which models need no training: those whose folder holds weights and a summary with the digest of this task.

The digest changes with whatever the weights of a model depend on: settings, feature spec, examples, seed, parent.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from contracts.artifacts import FRESH, WEIGHTS, WINDOWS
from contracts.bundle import bundle
from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.summary import FILE, Kind
from models.distributed import data_parallel
from models.distributed.run_checkpoint import RunCheckpoint
from models.jobs.training_task import TrainingTask

CHECKPOINTS = "checkpoints"


def digest(task: TrainingTask, name: str) -> str:
    """Of the model `name`, whose folder may carry the suffix of event-fresh features."""
    paths = [path for window in WINDOWS for path in task.out.examples(window).glob("day=*/*.parquet")]
    files = sorted((path.relative_to(task.out.out).as_posix(), _content(path, path.stat().st_mtime_ns))
                   for path in paths)
    config = task.config
    settings = [config.train.model_dump(mode="json", exclude={"models", "ranker", "warm_start", "checkpoint_minutes"}),
                config.prerank_kind, config.prerank.model_dump(mode="json", include={"keep", "hidden"}),
                config.retrieve.candidates, config.features.negative_rate]
    parts = [name, task.seed, settings, task.spec.model_dump(mode="json"), files]
    if task.parent is not None and task.parent.weights(name.removesuffix(FRESH)):
        parts.append(task.parent.manifest.content_hash)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _content(path: Path, _: int) -> str:
    """SHA-256 of a file as of its time, read once a process: every model asks, of the same examples."""
    return bundle.digest(path)


def kept_run(task: TrainingTask, name: str, member: int = 0) -> RunCheckpoint | None:
    """The checkpoint of model `name`, every `train.checkpoint_minutes`; None where none are wanted. Members of an
    ensemble have theirs apart: those that had ended are trained again, the one that was cut goes on."""
    minutes = task.config.train.checkpoint_minutes
    if not minutes:
        return None
    known = data_parallel.by_first(lambda: digest(task, name))
    folder, known = (f"{CHECKPOINTS}-{member}", f"{known}-{member}") if member else (CHECKPOINTS, known)
    return RunCheckpoint(task.out.model(name) / folder, 60.0 * minutes, known, task.resume)


def finished(task: TrainingTask, name: str, kind: type[Kind]) -> Kind | None:
    """The summary of an equal earlier run that came to its end, as the first process finds it; None with `force`."""
    return data_parallel.summary_by_first(lambda: _finished(task, name, kind), kind)


def _finished(task: TrainingTask, name: str, kind: type[Kind]) -> Kind | None:
    folder = task.out.model(name)
    if task.force or not (folder / WEIGHTS).exists():
        return None
    try:
        known = summary.read(folder, kind)
    except DataError:  # of another version, or damaged: trained again
        return None
    return known if getattr(known, "digest", None) == digest(task, name) else None


def take_summary_away(task: TrainingTask, name: str) -> None:
    """So that no summary ever stands beside weights it does not describe."""
    data_parallel.by_first(lambda: (task.out.model(name) / FILE).unlink(missing_ok=True))
