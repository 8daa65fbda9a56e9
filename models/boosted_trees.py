"""LightGBM on the raw columns: a reference from outside, trained on the rows that the consumers of crosses see."""

from __future__ import annotations

import importlib.util

import numpy as np

from contracts.feature_spec import FeatureSpec
from models.batches import ExampleSet
from models.metrics import auc

ROUNDS, PATIENCE = 600, 50


def available() -> bool:
    """LightGBM is an optional part."""
    return importlib.util.find_spec("lightgbm") is not None


def raw_columns(examples: ExampleSet, spec: FeatureSpec) -> tuple[np.ndarray, list[int]]:
    """[N, columns] float64 with raw numbers and category ids, and which columns are categories; lists are left out."""
    numbers = [field.name for field in spec.fields if field.dense]
    categories = [field.name for field in spec.fields if field.kind == "categorical"]
    columns = [examples.column(name).astype(np.float64) for name in (*numbers, *categories)]
    return np.stack(columns, axis=1), list(range(len(numbers), len(columns)))


def fit_and_predict(
    train: tuple[np.ndarray, np.ndarray], validation: tuple[np.ndarray, np.ndarray], test: np.ndarray,
    categories: list[int], seed: int, learning_rate: float = 0.05, leaves: int = 31,
) -> tuple[np.ndarray, float]:
    """(log odds of the test rows, AUC of the validation rows), stopped early on validation; pairs are (X, label)."""
    import lightgbm

    settings = {"objective": "binary", "learning_rate": learning_rate, "num_leaves": leaves, "verbose": -1,
                "seed": seed, "num_threads": 2, "deterministic": True, "force_row_wise": True}
    sets = [lightgbm.Dataset(rows, label, categorical_feature=categories) for rows, label in (train, validation)]
    model = lightgbm.train(settings, sets[0], ROUNDS, valid_sets=sets[1:],
                           callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)])
    judged = np.asarray(model.predict(validation[0], raw_score=True))
    return np.asarray(model.predict(test, raw_score=True)), auc(validation[1], judged)
