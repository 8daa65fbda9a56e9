"""LightGBM beside the models of a run: what a table's usual tool makes of a bounded sample of the training window."""

from __future__ import annotations

import time

import numpy as np

from contracts.artifacts import LABEL, USER, WINDOWS
from contracts.errors import DataError
from contracts.progress import heard_by, report
from contracts.summaries import summary
from contracts.summaries.train import LightgbmSummary
from models.evaluation import boosted_trees
from models.evaluation.metrics import auc, gauc
from models.examples.in_memory import ArrayExamples, rows_of
from models.jobs.resume import digest
from models.jobs.training_task import TrainingTask

NAME = "lightgbm"
EVALUATED_ROWS = 500_000  # of validation and of test


def lightgbm_figures(task: TrainingTask) -> LightgbmSummary | None:
    """AUC and GAUC of the test window; None where LightGBM is not installed or no rows are given to it.

    Figures of equal settings, examples and seed are kept as they are.
    """
    if not task.config.train.lightgbm_rows or not boosted_trees.available():
        return None
    folder = task.out.model(NAME)
    known = _known(task)
    if known is None:
        with heard_by(task.on_progress):
            report(NAME)
            known = _fitted(task)
        summary.write(folder, known)
    return known.model_copy(update={"digest": None})


def _known(task: TrainingTask) -> LightgbmSummary | None:
    try:
        known = None if task.force else summary.read(task.out.model(NAME), LightgbmSummary)
    except DataError:  # of another version, or damaged: fitted again
        return None
    return known if known and known.digest == digest(task, NAME) else None


def _fitted(task: TrainingTask) -> LightgbmSummary:
    begin = time.perf_counter()
    limits = {window: task.config.train.lightgbm_rows if window == "train" else EVALUATED_ROWS for window in WINDOWS}
    rows = {window: _sample(task, window, limit) for window, limit in limits.items()}
    frequent = boosted_trees.frequent_values(rows["train"], task.spec)
    tables = {window: boosted_trees.raw_columns(part, task.spec, frequent) for window, part in rows.items()}
    label = {window: part.column(LABEL) for window, part in rows.items()}
    (train, categories), (validation, _), (test, _) = (tables[window] for window in WINDOWS)
    logits, validation_auc = boosted_trees.fit_and_predict(
        (train, label["train"]), (validation, label["validation"]), test, categories, task.seed)
    logits = logits + rows["test"].log_draws()
    users = rows["test"].column(USER) if task.spec.has_users else None
    return LightgbmSummary(
        name=NAME, auc=auc(label["test"], logits),
        gauc=None if users is None else gauc(label["test"], logits, np.asarray(users)).value,
        validation_auc=validation_auc, rows=len(train), seconds=time.perf_counter() - begin, digest=digest(task, NAME),
    )


def _sample(task: TrainingTask, window: str, limit: int) -> ArrayExamples:
    rows = rows_of(task.examples(window), task.spec, limit, task.seed)
    return ArrayExamples(task.out.examples(window), task.spec, rows)
