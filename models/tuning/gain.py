"""What settings gain over others on rows that neither was chosen by; errors by the bootstrap over users.

The figure is the one that `train.monitor` names; a gain is better where it is larger. Log loss and GAUC are of all
rows, since draws of users cost little there. An AUC is computed anew in each draw, of at most ROWS rows: of a larger
window it is of a sample of each class, on which its expectation, the share of pairs of a positive and a negative that
are in order, does not depend. Positives come first: where clicks are rare, its error comes from them.
"""

from __future__ import annotations

import math

import numpy as np

from contracts.artifacts import LABEL, USER
from models.evaluation.bootstrap import Bootstrap, auc_bootstrap, gauc_difference, mean_bootstrap, of_each_class
from models.examples.batches import ExampleSet
from models.training.monitor import Monitor

DRAWS, ROWS = 100, 200_000  # of the bootstrap; rows that an AUC is of, at most


def gain(
    examples: ExampleSet, ours: np.ndarray, theirs: np.ndarray, monitor: Monitor, seed: int, negative_rate: float = 1.0
) -> Bootstrap:
    """Logits [N] of two networks in file order -> ours less theirs. They learned from a share `negative_rate` of the
    negatives; log losses are of probabilities among the rows that are there."""
    labels, ours, theirs = (part.astype(np.float64) for part in (examples.column(LABEL), ours, theirs))
    users = examples.column(USER) if examples.spec.has_users else np.arange(len(labels))
    if monitor == "log_loss":
        level = math.log(negative_rate) - examples.log_draws()
        gained = _losses(labels, theirs + level) - _losses(labels, ours + level)
        return mean_bootstrap(gained, users, draws=DRAWS, seed=seed)
    if monitor == "gauc" and examples.spec.has_users:
        return gauc_difference(labels, ours, theirs, users, draws=DRAWS, seed=seed)
    rows = of_each_class(labels, ROWS)
    return auc_bootstrap(labels[rows], ours[rows], users[rows], baseline=theirs[rows], draws=DRAWS, seed=seed)


def _losses(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """[N] log(1 + exp(logit)) - label x logit."""
    return np.logaddexp(0.0, logits) - labels * logits
