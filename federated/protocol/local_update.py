"""What a client's training changed, and the words it becomes before masking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contracts.errors import ProtocolError
from federated.averaging.averaging import dense_weight, row_weights
from federated.protocol.plan import LOSS_SCALE, TAIL, Plan
from federated.secure_aggregation.fixed_point import as_words, signed
from federated.secure_aggregation.masking import Layout


@dataclass(frozen=True)
class LocalUpdate:
    """`rows` [R, width] and `dense` [D] are new minus old; `row_samples` [R]: local samples that used the row.
    `kept` of `held` samples were trained on; `loss` is the sum of their losses."""

    rows: np.ndarray
    row_samples: np.ndarray
    dense: np.ndarray
    kept: int
    held: int
    loss: float


def update_words(plan: Plan, layout: Layout, succinct: np.ndarray, update: LocalUpdate) -> np.ndarray:
    """One client's words before masking: dense part, tail, then update and weight of each row, zero where padded.

    With noise there are updates alone, each of weight 1: counts would drown in it, or tell what it hides."""
    if plan.noise:
        return _of_equals(plan, layout, succinct, update)
    weight = dense_weight(plan.rule, update.kept)
    weights = row_weights(plan.rule, update.row_samples, update.kept)
    heaviest = max(int(weights.max(initial=0)), weight)
    if heaviest > plan.max_samples:
        raise ProtocolError(f"a weight of {heaviest} exceeds federated.max_samples {plan.max_samples}")
    if plan.counts and update.dense.max(initial=0) > plan.fixed.clip:
        raise ProtocolError(f"a count of {update.dense.max():.0f} exceeds federated.max_samples "
                            f"{plan.fixed.clip:.0f}; prepare the client's later rows with this configuration")
    counts = update.row_samples if plan.rule == "holders" else (update.row_samples > 0)
    body = np.zeros((len(layout.places), layout.width), dtype=layout.dtype)
    body[succinct, :-1] = plan.fixed.encode(update.rows, weights[:, None])
    body[succinct, -1] = as_words(counts)
    tail = as_words(np.array([weight, update.kept, update.held, round(update.loss * LOSS_SCALE)]))
    assert len(tail) == TAIL
    return np.concatenate([plan.fixed.encode(update.dense, weight), tail, body.ravel()])


def _of_equals(plan: Plan, layout: Layout, succinct: np.ndarray, update: LocalUpdate) -> np.ndarray:
    body = np.zeros((len(layout.places), layout.width), dtype=layout.dtype)
    body[succinct, :-1] = plan.fixed.encode(update.rows)
    return np.concatenate([plan.fixed.encode(update.dense), np.zeros(TAIL, layout.dtype), body.ravel()])


def shortened(words: np.ndarray, norm: float) -> np.ndarray:
    """Words whose integers have an L2 norm of at most `norm`: all scaled alike and cut towards zero."""
    integers = signed(words).astype(np.float64)
    length = float(np.linalg.norm(integers))
    return as_words(np.trunc(integers * (norm / length))) if length > norm else words
