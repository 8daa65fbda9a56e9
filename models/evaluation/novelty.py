"""Quality on rows of users and items that training knew, and on those of new ones, where what remembers fails."""

from __future__ import annotations

import numpy as np

from contracts.artifacts import LABEL, USER
from contracts.features.feature_spec import UNKNOWN
from contracts.summaries.train import SliceFigures
from models.evaluation.metrics import auc, gauc
from models.examples.batches import ExampleSet
from models.layers.embedding import item_slot


def by_novelty(train: ExampleSet, test: ExampleSet, logits: np.ndarray) -> dict[str, SliceFigures]:
    """"known users", "new users", "known items", "new items" -> figures of those test rows; roles that the log lacks
    are left out. An item is new where the vocabulary lacks it or no training row has it."""
    labels = test.column(LABEL)
    users = test.column(USER) if test.spec.has_users else None
    known: dict[str, np.ndarray] = {}
    if users is not None:
        known["users"] = np.isin(users, np.unique(train.column(USER)))
    slot = item_slot(test.spec)
    if slot is not None:
        ids = test.column(slot.name)
        known["items"] = np.isin(ids, np.unique(train.column(slot.name))) & (ids > UNKNOWN)
    return {f"{word} {role}": _figures(labels, logits, users, rows)
            for role, there in known.items() for word, rows in (("known", there), ("new", ~there))}


def _figures(labels: np.ndarray, logits: np.ndarray, users: np.ndarray | None, rows: np.ndarray) -> SliceFigures:
    labels, logits = labels[rows], logits[rows]
    positives = int(labels.sum())
    both = 0 < positives < len(labels)
    return SliceFigures(
        rows=len(labels), positives=positives, auc=auc(labels, logits) if both else None,
        gauc=gauc(labels, logits, users[rows]).value if both and users is not None else None)
