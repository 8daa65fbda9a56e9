"""LightGBM on the raw columns: a reference from outside.

Numbers are as they are, categories by their ids; a list is its length and, for its LISTED most frequent values of the
training rows, whether it holds them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from contracts.features.feature_spec import PADDING, UNKNOWN, FeatureField, FeatureSpec
from contracts.progress import report
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet

if TYPE_CHECKING:
    from lightgbm.callback import CallbackEnv

ROUNDS, PATIENCE = 600, 50
LISTED = 32
LISTS = ("multi_valued", "sequence")


def available() -> bool:
    """LightGBM is an optional part."""
    return importlib.util.find_spec("lightgbm") is not None


def frequent_values(train: ExampleSet, spec: FeatureSpec) -> dict[str, np.ndarray]:
    """Of every multi-valued or sequence field the ids that most lists hold, most frequent first."""
    frequent = {}
    for field in spec.fields:
        if field.kind in LISTS and field.length > 1:
            counts = np.bincount(train.column(field.name).ravel(), minlength=field.size)
            counts[: UNKNOWN + 1] = 0
            order = np.argsort(-counts, kind="stable")[:LISTED]
            frequent[field.name] = order[counts[order] > 0]
    return frequent


def raw_columns(
    examples: ExampleSet, spec: FeatureSpec, frequent: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, list[int]]:
    """[N, columns] float32, and which columns are categories; `frequent` is that of the training rows."""
    numbers = [field.name for field in spec.fields if field.dense]
    categories = [field.name for field in spec.fields if field.kind == "categorical" or _one_value(field)]
    columns = [examples.column(name).reshape(-1).astype(np.float32) for name in (*numbers, *categories)]
    for name, values in frequent.items():
        ids = examples.column(name)
        columns += [(ids > PADDING).sum(axis=1), *((ids == value).any(axis=1) for value in values)]
    return np.column_stack(columns).astype(np.float32), list(range(len(numbers), len(numbers) + len(categories)))


def _one_value(field: FeatureField) -> bool:
    return field.kind in LISTS and field.length == 1


def fit_and_predict(
    train: tuple[np.ndarray, np.ndarray], validation: tuple[np.ndarray, np.ndarray], test: np.ndarray,
    categories: list[int], seed: int, learning_rate: float = 0.05, leaves: int = 31,
) -> tuple[np.ndarray, float]:
    """(log odds of the test rows, AUC of the validation rows), stopped early on validation; pairs are (X, label). On as
    many threads as torch has here; the trees do not hang on it."""
    import lightgbm

    settings = {"objective": "binary", "learning_rate": learning_rate, "num_leaves": leaves, "verbose": -1,
                "seed": seed, "num_threads": torch.get_num_threads(), "deterministic": True, "force_row_wise": True}
    sets = [lightgbm.Dataset(rows, label, categorical_feature=categories) for rows, label in (train, validation)]
    model = lightgbm.train(settings, sets[0], ROUNDS, valid_sets=sets[1:],
                           callbacks=[_report_tree, lightgbm.early_stopping(PATIENCE, verbose=False)])
    validated = np.asarray(model.predict(validation[0], raw_score=True))
    return np.asarray(model.predict(test, raw_score=True)), auc(validation[1], validated)


def _report_tree(state: CallbackEnv) -> None:
    """The number of trees at most; early stopping ends before it."""
    report("lightgbm", state.iteration + 1, state.end_iteration)
