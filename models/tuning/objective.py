"""One trial: a model trained with the settings that the search wants to know about, as `sluice train` would train it.

Its score is that of its best epoch on half 0 of the validation window. Half 1 is read for one purpose: logits of the
configured settings and of trials that are the best so far, or level with it, are kept, by which the gain is found in
the end. The test window is not opened.
"""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import optuna
import torch

from contracts.artifacts import LABEL, USER, Artifacts
from contracts.bundle.bundle import save_array
from contracts.config.config import Config
from contracts.errors import OneClassError, SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.train import EpochFigures
from models.evaluation.metrics import require_both_classes
from models.evaluation.slot_calibration import position_logit
from models.examples.batches import ExampleSet
from models.examples.validation_half import ValidationHalf
from models.networks import registry
from models.pair_rates import weights as pair_weights
from models.training import fitting
from models.training.monitor import Monitor, Validated
from models.tuning import search_space
from models.tuning.search_space import Space
from models.tuning.study import CONFIGURED, CUT, ERROR, best

FEWEST = 2  # users with rows of both classes, in the half by which settings are judged
LOGITS = "logits"  # folder of half 1's logits, a folder per study with a file per trial


class TuningTask(NamedTuple):
    """What all processes of a search know: `rows` of the training window, a space for each model, the study's name.

    `deadline` is a time as `time.time()` gives it; `most` trials in all.
    """

    config: Config
    out: Artifacts
    spec: FeatureSpec
    seed: int
    rows: int
    spaces: dict[str, Space]
    study: str
    deadline: float
    most: int

    @property
    def folder(self) -> Path:
        return self.out.tuning


def half(out: Artifacts, spec: FeatureSpec, number: int) -> ValidationHalf:
    """0: by which training stops; 1: by which what was found is held against what was configured."""
    return ValidationHalf(out.examples("validation"), spec, number)


def logits_file(folder: Path, study: str, trial: int) -> Path:
    """Every study numbers its trials from 0."""
    return folder / LOGITS / study / f"{trial}.npy"


def check_windows(out: Artifacts, spec: FeatureSpec, monitor: Monitor) -> int:
    """Returns the training rows. Raises OneClassError where a window, or a half of it, holds one class, or too few
    users of both for a GAUC that is the figure wanted."""
    train, halves = ExampleSet(out.examples("train"), spec), [half(out, spec, number) for number in (0, 1)]
    for window in (train, *halves):
        require_both_classes(window.column(LABEL), str(window.folder))
    if monitor == "gauc" and spec.has_users:
        _require_rankings(halves[1])
    return train.rows


def _require_rankings(window: ValidationHalf) -> None:
    labels, user = window.column(LABEL), np.unique(window.column(USER), return_inverse=True)[1]
    clicks, rows = np.bincount(user, weights=labels), np.bincount(user)
    ranked = int(((clicks > 0) & (clicks < rows)).sum())
    if ranked < FEWEST:
        raise OneClassError(
            f"{window.folder} (half {window.half}): {ranked} of {len(rows)} users have rows of both classes, and "
            f'train.monitor = "gauc" needs at least {FEWEST} to compare settings by: widen the validation window, or '
            'say train.monitor = "auc"')


class Objective:
    """What Optuna calls with each trial; examples stay decoded from one to the next."""

    def __init__(self, task: TuningTask) -> None:
        self.task = task
        self._train = ExampleSet(task.out.examples("train"), task.spec)
        self._stopping, self._unseen = (half(task.out, task.spec, number) for number in (0, 1))
        self._parent = multiprocessing.parent_process()

    def __call__(self, trial: optuna.Trial) -> float:
        """The score. Raises TrialPruned for a trial that is behind the others, or that time has run out for."""
        try:
            return self._score(trial)
        except SluiceError as error:
            trial.set_user_attr(ERROR, str(error))
            raise

    def _score(self, trial: optuna.Trial) -> float:
        task = self.task
        model = trial.suggest_categorical("model", tuple(task.spaces))
        values = search_space.suggest(trial, task.spaces[model])
        settings = search_space.with_settings(task.config.train, values)
        torch.manual_seed(task.seed)
        network = registry.build(model, task.spec, settings)
        pair_weights.load_into(network, task.spec, task.out.pair_rates)
        watch = _Watch(trial, task)
        fit = fitting.fit(
            network, self._train, self._stopping, settings, task.seed, positions=task.spec.positions,
            on_epoch=watch.epoch, on_batch=lambda done, batches: self._check_time(trial),
            negative_rate=task.config.features.negative_rate)
        leader = best(trial.study)
        if CONFIGURED in trial.user_attrs or leader is None or watch.best >= (leader.value or 0.0):
            shown = fitting.predict(network, self._unseen) + position_logit(self._unseen, fit.position_bias)
            save_array(logits_file(task.folder, task.study, trial.number), shown.astype(np.float32))
        return watch.best

    def _check_time(self, trial: optuna.Trial) -> None:
        if time.time() > self.task.deadline:
            trial.set_user_attr(CUT, True)
            raise optuna.TrialPruned
        if self._parent is not None and not self._parent.is_alive():
            raise SystemExit  # whoever started this search is gone


class _Watch:
    """Reports every epoch's best score so far; prunes, the configured settings excepted."""

    def __init__(self, trial: optuna.Trial, task: TuningTask) -> None:
        self._trial, self._monitor = trial, task.config.train.monitor
        self.best = -float("inf")

    def epoch(self, figures: EpochFigures) -> None:
        found = Validated(figures.validation_loss, figures.validation_auc, figures.validation_gauc)
        self.best = max(self.best, found.score(self._monitor))
        self._trial.report(self.best, figures.epoch)
        if CONFIGURED not in self._trial.user_attrs and self._trial.should_prune():
            raise optuna.TrialPruned
