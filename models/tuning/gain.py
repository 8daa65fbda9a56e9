"""What settings gain over others on rows that neither was chosen by; errors by the bootstrap over users.

The figure is the one that `train.monitor` names; a gain is better where it is larger.
"""

from __future__ import annotations

import math

import numpy as np

from contracts.artifacts import LABEL, USER
from models.evaluation.bootstrap import Bootstrap, auc_bootstrap, gauc_difference, mean_bootstrap
from models.examples.batches import ExampleSet
from models.training.monitor import Monitor

DRAWS, ROWS = 100, 200_000  # of the bootstrap; of a larger window every n-th row is taken


def gain(
    examples: ExampleSet, ours: np.ndarray, theirs: np.ndarray, monitor: Monitor, seed: int, negative_rate: float = 1.0
) -> Bootstrap:
    """Logits [N] of two networks in file order -> ours less theirs. They learned from a share `negative_rate` of the
    negatives; log losses are of probabilities among the rows that are there."""
    step = -(-examples.rows // ROWS)
    labels, ours, theirs = (part[::step].astype(np.float64) for part in (examples.column(LABEL), ours, theirs))
    users = examples.column(USER)[::step] if examples.spec.has_users else np.arange(len(labels))
    if monitor == "log_loss":
        level = math.log(negative_rate) - examples.log_draws()[::step]
        gained = _losses(labels, theirs + level) - _losses(labels, ours + level)
        return mean_bootstrap(gained, users, draws=DRAWS, seed=seed)
    if monitor == "gauc" and examples.spec.has_users:
        return gauc_difference(labels, ours, theirs, users, draws=DRAWS, seed=seed)
    return auc_bootstrap(labels, ours, users, baseline=theirs, draws=DRAWS, seed=seed)


def _losses(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """[N] log(1 + exp(logit)) - label x logit."""
    return np.logaddexp(0.0, logits) - labels * logits
