"""One ranker from settings to files: fit, calibrate, evaluate, save, track.

    FOLDER/weights.safetensors  calibration.safetensors  test_logits.npy  test_rows.npy  training.png  summary.json

A folder whose summary carries the same digest (settings, feature spec, examples, seed) is taken as it is. Of several
processes all fit, and the first alone reads and writes the folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contracts import summary
from contracts.artifacts import (
    CALIBRATION,
    FRESH,
    LABEL,
    POSITION,
    ROW,
    TEST_LOGITS,
    TEST_ROWS,
    USER,
    WEIGHTS,
    WINDOWS,
    Artifacts,
)
from contracts.bundle import bundle
from contracts.bundle.bundle import save_array, save_weights
from contracts.config.config import Config
from contracts.features import vocabulary
from contracts.features.feature_spec import SPEC_FILE, FeatureSpec
from models.evaluation import calibration, plots
from models.evaluation.auc_bootstrap import bootstrap
from models.evaluation.calibration_metrics import ece, predicted_over_observed_by
from models.evaluation.evaluate import evaluate
from models.evaluation.metrics import auc, require_both_classes
from models.examples.batches import ExampleSet
from models.examples.validation_half import ValidationHalf, halves
from models.networks import registry
from models.pair_rates import weights as pair_weights
from models.tracking.tracking import Run, Tracker
from models.training import checkpoint, data_parallel
from models.training import loop as training_loop
from models.training.progress import OnProgress, batch_counter
from models.training.warm_start import Build, Parent, WarmStart

PICTURE = "training.png"
DRAWS = 100


@dataclass(frozen=True)
class Job:
    """What every model of one run shares. `progress(what, done, all)` counts batches; `parent` None starts cold."""

    config: Config
    out: Artifacts
    spec: FeatureSpec
    seed: int
    tracker: Tracker
    force: bool
    progress: OnProgress
    parent: Parent | None = None

    def examples(self, window: str, fresh: bool = False) -> ExampleSet:
        return ExampleSet(self.out.examples(window), self.spec, fresh)

    def early_stopping(self, fresh: bool = False) -> ValidationHalf:
        return ValidationHalf(self.out.examples("validation"), self.spec, 0, fresh)

    def digest(self, name: str) -> str:
        """Changes with whatever the weights of one model depend on."""
        paths = [path for window in WINDOWS for path in self.out.examples(window).glob("day=*/*.parquet")]
        files = sorted((path.relative_to(self.out.out).as_posix(), bundle.digest(path)) for path in paths)
        config = self.config
        settings = [config.train.model_dump(mode="json", exclude={"models", "ranker", "warm_start"}),
                    config.prerank_kind, config.prerank.model_dump(mode="json", include={"keep", "hidden"}),
                    config.retrieve.candidates, config.features.negative_rate]
        parts = [name, self.seed, settings, self.spec.model_dump(mode="json"), files]
        if self.parent is not None and self.parent.weights(name.removesuffix(FRESH)):
            parts.append(self.parent.manifest.content_hash)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def settings(self, name: str) -> dict[str, Any]:
        return {"model": name, "seed": self.seed, "data": self.config.name, "data_version": self.config.version,
                "train": self.config.train.model_dump(mode="json")}

    def done(self, name: str) -> dict[str, Any] | None:
        """The summary of an equal earlier run that came to its end, as the first process finds it."""
        return data_parallel.by_first(lambda: self._done(name))

    def _done(self, name: str) -> dict[str, Any] | None:
        found = summary.read(self.out.model(name))
        kept = (self.out.model(name) / WEIGHTS).exists() and found.get("digest") == self.digest(name)
        return found if kept and not self.force else None

    def start(self, name: str) -> Run:
        """Takes an older summary away, so that no summary ever stands beside weights it does not describe."""
        data_parallel.by_first(lambda: (self.out.model(name) / summary.FILE).unlink(missing_ok=True))
        return self.tracker.start(name, self.settings(name))

    def warm(self, name: str, build: Build) -> WeightsTaken:
        """What `training_loop.fit` calls to give a network the parent's weights, and what it said then."""
        return WeightsTaken(self, name, build)

    def batch_counter(self, name: str, epochs: int) -> Callable[[int, int], None]:
        """Turns the batches of each epoch into one count over all epochs."""
        return batch_counter(self.progress, name, epochs)


class WeightsTaken:
    """`figures` is empty where training started cold."""

    def __init__(self, job: Job, name: str, build: Build) -> None:
        self._job, self._name, self._build = job, name, build
        self.figures: dict[str, Any] = {}

    def __call__(self, network: torch.nn.Module) -> None:
        job = self._job
        if job.parent is not None:
            keys = vocabulary.read_all(job.out.encoding)
            carry = WarmStart(job.parent, job.spec, keys, job.config.train)
            self.figures = carry(network, self._name, self._build)


def train_ranker(job: Job, name: str, fresh: bool = False) -> dict[str, Any]:
    """The summary of the model. `fresh` trains on the event-fresh twins, in a folder of that suffix.

    Raises OneClassError with the counts when the training or test window or the calibration half is of one class.
    """
    folder_name = name + FRESH if fresh else name
    known = job.done(folder_name)
    if known is not None:
        return known
    train, test = job.examples("train", fresh), job.examples("test", fresh)
    for window in (train, test):
        require_both_classes(window.column(LABEL), str(window.folder))
    run = job.start(folder_name)
    torch.manual_seed(job.seed)
    network = registry.build(name, job.spec, job.config.train)
    warm = job.warm(name, lambda spec, config: registry.build(name, spec, config.train))
    pair_weights.load_into(network, job.spec, job.out.pair_rates)
    fitted = training_loop.fit(
        network, train, job.early_stopping(fresh), job.config.train, job.seed, positions=job.spec.positions,
        start=warm,
        on_epoch=lambda entry: run.metrics({k: v for k, v in entry.items() if k != "epoch"}, entry["epoch"]),
        on_batch=job.batch_counter(folder_name, job.config.train.epochs),
    )
    return data_parallel.by_first(lambda: _finish(job, folder_name, network, fitted, fresh, run, warm.figures))


def _finish(
    job: Job, folder_name: str, network: torch.nn.Module, fitted: training_loop.FitResult, fresh: bool, run: Run,
    warm: dict[str, Any],
) -> dict[str, Any]:
    """Judges and writes the files of a fitted model; answers its summary."""
    folder = job.out.model(folder_name)
    figures = _judge(job, network, fitted, fresh, folder)
    checkpoint.save(network, folder / WEIGHTS)
    if plots.available():
        plots.write(folder / PICTURE, folder_name, fitted.history, figures)
    run.metrics({k: v for k, v in figures.items() if isinstance(v, int | float)}, len(fitted.history))
    for path in (folder / WEIGHTS, folder / CALIBRATION, folder / PICTURE, job.out.encoding / SPEC_FILE):
        if path.exists():
            run.artifact(path)
    run.end()
    found = {
        **figures, "seconds": fitted.seconds, "rows_per_second": fitted.rows_per_second, "epochs": len(fitted.history),
        "best_epoch": fitted.best_epoch, "history": fitted.history, "position_bias": fitted.position_bias,
        "warm_start": warm, "digest": job.digest(folder_name),
    }
    summary.write(folder, found)
    return found


def _judge(
    job: Job, network: torch.nn.Module, fitted: training_loop.FitResult, fresh: bool, folder: Path
) -> dict[str, Any]:
    """Calibrates, reads the test window once, saves the curve and the test logits."""
    curve, validation_auc = calibrate(job, network, fitted.position_bias, fresh)
    test = job.examples("test", fresh)
    test_logits, test_labels = training_loop.predict(network, test), test.column(LABEL)
    users = test.column(USER) if job.spec.has_users else None
    shown = position_logit(test, fitted.position_bias)
    figures = evaluate(test_logits, test_labels, users, curve, position_logit=shown, where=str(test.folder))
    raw = ece(test_labels, calibration.identity(job.config.features.negative_rate).apply(test_logits + shown))
    groups = users if users is not None else np.arange(test.rows)
    error = bootstrap(test_labels, test_logits, groups, draws=DRAWS, seed=job.seed).standard_error
    save_array(folder / TEST_LOGITS, test_logits)
    save_array(folder / TEST_ROWS, test.column(ROW))
    save_weights(folder / CALIBRATION, curve.arrays())
    return {
        **figures, "auc_standard_error": error, "ece_uncalibrated": raw, "validation_auc": validation_auc,
        "by_position": _by_position(test, curve.apply(test_logits + shown)) if job.spec.has_position else None,
    }


def calibrate(
    job: Job, network: torch.nn.Module, position_bias: list[float], fresh: bool = False
) -> tuple[calibration.Calibration, float]:
    """The curve fitted on validation half 1, and the AUC on the whole validation window."""
    validation = job.examples("validation", fresh)
    logits, labels = training_loop.predict(network, validation), validation.column(LABEL)
    half = halves(validation) == 1
    shown = logits + position_logit(validation, position_bias)
    return calibration.fit(job.config.train.calibration, shown[half], labels[half]), auc(labels, logits)


def _by_position(test: ExampleSet, probabilities: np.ndarray) -> dict[str, dict[str, float | None]]:
    """Predicted over observed per slot: far from 1 where the position bias does not explain the clicks."""
    found = predicted_over_observed_by(test.column(LABEL), probabilities, test.column(POSITION))
    return {position: part._asdict() for position, part in found.items()}


def position_logit(examples: ExampleSet, bias: list[float]) -> np.ndarray:
    """What the slot of each row adds to its logit; positions beyond the last count as the last."""
    if len(bias) < 2:
        return np.zeros(examples.rows)
    return np.asarray(bias)[np.clip(examples.column(POSITION).astype(np.int64) - 1, 0, len(bias) - 1)]
