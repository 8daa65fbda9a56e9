"""LightGBM beside the models of a run: what a table's usual tool makes of a bounded sample of the training window."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from contracts import summary
from contracts.artifacts import LABEL, USER, WINDOWS
from models.evaluation import boosted_trees
from models.evaluation.metrics import auc, gauc
from models.examples import in_memory as array_examples
from models.examples.in_memory import ArrayExamples
from models.jobs.ranker_training import Job

NAME = "lightgbm"
JUDGED_ROWS = 500_000  # of validation and of test


def outside_figures(job: Job) -> dict[str, Any] | None:
    """`auc` and `gauc` of the test window; None where LightGBM is not installed or not asked for.

    Figures of equal settings, examples and seed are kept as they are.
    """
    if not job.config.train.lightgbm_rows or not boosted_trees.available():
        return None
    folder, digest = job.out.model(NAME), job.digest(NAME)
    known = summary.read(folder)
    if known.get("digest") != digest or job.force:
        job.progress(NAME, 1, 2)
        known = {"name": NAME, **_fitted(job), "digest": digest}
        job.progress(NAME, 2, 2)
        summary.write(folder, known)
    return {name: value for name, value in known.items() if name != "digest"}


def _fitted(job: Job) -> dict[str, Any]:
    begin = time.perf_counter()
    limits = {window: job.config.train.lightgbm_rows if window == "train" else JUDGED_ROWS for window in WINDOWS}
    rows = {window: _sample(job, window, limit) for window, limit in limits.items()}
    frequent = boosted_trees.frequent_values(rows["train"], job.spec)
    tables = {window: boosted_trees.raw_columns(part, job.spec, frequent) for window, part in rows.items()}
    label = {window: part.column(LABEL) for window, part in rows.items()}
    (train, categories), (validation, _), (test, _) = (tables[window] for window in WINDOWS)
    logits, validation_auc = boosted_trees.fit_and_predict(
        (train, label["train"]), (validation, label["validation"]), test, categories, job.seed)
    users = rows["test"].column(USER) if job.spec.has_users else None
    return {
        "auc": auc(label["test"], logits),
        "gauc": None if users is None else gauc(label["test"], logits, np.asarray(users)).value,
        "validation_auc": validation_auc, "rows": len(train), "seconds": time.perf_counter() - begin,
    }


def _sample(job: Job, window: str, limit: int) -> ArrayExamples:
    rows = array_examples.rows_of(job.examples(window), job.spec, limit, job.seed)
    return ArrayExamples(job.out.examples(window), job.spec, rows)
