"""How the opened sums move the model: rules, each a weight that a client gives a row and a divisor.

    rule     weight of client i for row j     W_j +=
    holders  v_ij, its samples with j         sum(w delta) / sum(v)          (SFSL)
    heat     1 where v_ij > 0                 sum(delta) / K * N / n_j       (FedSubAvg; n_j clients of all N hold j)
    plain    v_i, its samples                 sum(w delta) / sum(v_i)        (FedAvg)
    latest   1 where v_ij > 0                 see federated/averaging/fedlaavg.py      (FedLaAvg)

K is the number of clients in the sum. N / n_j reaches thousands for a row that few hold and is clipped at
`largest_heat`. The dense part is averaged by samples, under heat by clients.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Rule = Literal["holders", "heat", "plain", "latest"]
BY_CLIENTS = ("heat", "latest")


def row_weights(rule: Rule, row_samples: np.ndarray, samples: int) -> np.ndarray:
    """int64 [R]: what a client multiplies its rows' updates by. Rows that it padded have `row_samples` 0."""
    if rule == "holders":
        return row_samples
    if rule == "latest":
        return np.ones_like(row_samples)  # also where a row is used no more and its last gradient is taken back
    return np.where(row_samples > 0, 1 if rule == "heat" else samples, 0)


def dense_weight(rule: Rule, samples: int) -> int:
    """What a client multiplies its dense update by."""
    return 1 if rule in BY_CLIENTS else samples


def row_steps(
    rule: Rule, sums: np.ndarray, weights: np.ndarray, dense_weight_sum: float, heat: np.ndarray | None,
    largest_heat: float,
) -> np.ndarray:
    """[R, D] steps of the rows from sums of weighted updates [R, D] and of weights [R].

    `dense_weight_sum` is the sum of samples, under heat the number K of clients; `heat` [R] is N / n_j.
    """
    if rule == "holders":
        return sums / np.maximum(weights, 1.0)[:, None]
    scale = np.ones(len(sums)) if heat is None or rule == "plain" else np.minimum(heat, largest_heat)
    return sums * (scale / max(dense_weight_sum, 1.0))[:, None]
