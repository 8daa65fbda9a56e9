"""Which models need no training: those whose folder holds weights and a summary with the digest of this task.

The digest changes with whatever the weights of a model depend on: settings, feature spec, examples, seed, parent.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from contracts.artifacts import FRESH, WEIGHTS, WINDOWS
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.summary import FILE, Kind
from models.distributed import data_parallel
from models.distributed.run_checkpoint import CHECKPOINTS, Identity, RunCheckpoint, named, short
from models.jobs.training_task import TrainingTask

TOWER = "two_tower"
APART = {"models", "ranker", "warm_start", "checkpoint_minutes"}  # settings that no model's weights depend on


def digest(task: TrainingTask, name: str) -> str:
    """Of the model `name`, whose folder may carry the suffix of event-fresh features."""
    return hashlib.sha256(json.dumps([*_parts(task, name).values()], sort_keys=True).encode()).hexdigest()


def _parts(task: TrainingTask, name: str) -> dict[str, object]:
    """All that the weights of a model depend on."""
    paths = [path for window in WINDOWS for path in task.out.examples(window).glob("day=*/*.parquet")]
    files = sorted((path.relative_to(task.out.out).as_posix(), _content(path, path.stat().st_mtime_ns))
                   for path in paths)
    parts = {"model": name, "seed": task.seed, "settings": [*_settings(task.config).values()],
             "spec": task.spec.model_dump(mode="json"), "examples": files}
    if name == TOWER:  # whether it finds more for unknown requesters is asked of its own candidates
        parts["retrieve.two_tower"] = task.config.retrieve.two_tower
    if task.parent is not None and task.parent.weights(name.removesuffix(FRESH)):
        parts["parent"] = task.parent.manifest.content_hash
    return parts


def _settings(config: Config) -> dict[str, object]:
    return {
        "train": config.train.model_dump(mode="json", exclude=APART), "prerank.kind": config.prerank_kind,
        "prerank": config.prerank.model_dump(mode="json", include={"keep", "hidden"}),
        "retrieve.candidates": config.retrieve.candidates, "features.negative_rate": config.features.negative_rate,
        **({"validation loss": "among all negatives"} if config.features.negative_rate < 1.0 else {})}


def identity(task: TrainingTask, name: str) -> dict[str, str]:
    """The same for people: settings of training one by one, and of what is long a hash."""
    parts = {**_parts(task, name), **_settings(task.config)}
    others = {key: short(value) for key, value in parts.items() if key not in ("settings", "train")}
    return {"sluice": _sluice(), **others, **named("train", task.config.train, APART)}


def _sluice() -> str:
    """The version, where it is installed: on a GPU machine it may lie on the path alone."""
    try:
        return version("sluice")
    except PackageNotFoundError:
        return "not installed"


@functools.cache
def _content(path: Path, _: int) -> str:
    """SHA-256 of a file as of its time, read once a process: every model asks, of the same examples."""
    return bundle.digest(path)


def kept_run(task: TrainingTask, name: str, member: int = 0) -> RunCheckpoint | None:
    """The checkpoint of model `name`, every `train.checkpoint_minutes`; None where none are wanted. Members of an
    ensemble have theirs apart: each goes on from its last. Processes that torchrun started in the place of others take
    up what these left, if it is of this run."""
    minutes = task.config.train.checkpoint_minutes
    if not minutes:
        return None
    known = data_parallel.by_first(lambda: identity(task, name)) | {"member": str(member)}
    folder = task.out.model(name) / (f"{CHECKPOINTS}-{member}" if member else CHECKPOINTS)
    kept = RunCheckpoint(folder, 60.0 * minutes, known, task.resume)
    kept.resume = kept.resume or (data_parallel.restarted() and data_parallel.by_first(kept.fits))
    return kept


def kept_alone(task: TrainingTask, folder: Path, known: Identity) -> RunCheckpoint | None:
    """As `kept_run`, in `folder`, of what the first process trains by itself while the others wait."""
    minutes = task.config.train.checkpoint_minutes
    if not minutes:
        return None
    kept = RunCheckpoint(folder / CHECKPOINTS, 60.0 * minutes, {"sluice": _sluice(), **known}, task.resume, alone=True)
    kept.resume = kept.resume or (data_parallel.restarted() and kept.fits())
    return kept


def clear_runs(task: TrainingTask, name: str) -> None:
    """Once the model is written, with its summary: until then a run that is killed goes on from what it kept last."""
    for folder in task.out.model(name).glob(f"{CHECKPOINTS}*"):
        shutil.rmtree(folder, ignore_errors=True)


def forget_other_runs(task: TrainingTask, names: Iterable[str], channels: Iterable[str] = ()) -> None:
    """What a run that trains the models of these names anew does first, or its resumption would be refused for what an
    older run has left of one that this one had not come to. Checkpoints of this very run stay: another process may be
    at them. Of `channels`, which one process alone trains, all go."""
    if not task.resume:
        data_parallel.by_first(lambda: _forget(task, names, () if data_parallel.restarted() else channels))


def _forget(task: TrainingTask, names: Iterable[str], channels: Iterable[str]) -> None:
    left = [folder for name in channels for folder in task.out.channel(name).glob(f"{CHECKPOINTS}*")]
    for name in (each for one in names for each in (one, one + FRESH)):
        for folder in task.out.model(name).glob(f"{CHECKPOINTS}*"):
            known = identity(task, name) | {"member": folder.name[len(CHECKPOINTS) + 1:] or "0"}
            if any(folder.glob("[0-9]*")) and not RunCheckpoint(folder, 0.0, known).fits():
                left.append(folder)
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)


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
