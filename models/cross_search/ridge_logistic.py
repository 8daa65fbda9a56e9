"""Logistic regression over id columns, solved to its optimum by L-BFGS with a ridge penalty of its own per column.

    minimise  sum over rows of log loss + 1/2 sum over columns c of l2_c ||w_c||^2

The downstream model in which crosses are compared: convex, so that a difference between two sets of columns is not one
between two runs of an optimiser. All rows are in memory: it is meant for bounded samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

TOLERANCE = 1e-7  # change of the mean loss in an iteration


class Column(NamedTuple):
    """codes [N] below `size`; one weight per code, pulled to zero by `l2`."""

    codes: np.ndarray
    size: int
    l2: float


class RidgeLogistic:
    """Fitted weights; `weights` are those of all columns side by side."""

    def __init__(self, weights: Tensor, bias: float, starts: Sequence[int]) -> None:
        self.weights, self.bias, self.starts = weights, bias, starts

    def logits(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Codes [N] per column -> logits float64 [N]."""
        total = np.full(len(codes[0]), self.bias, dtype=np.float64)
        weights = self.weights.numpy()
        for start, column in zip(self.starts, codes, strict=True):
            total += weights[start + column]
        return total


def fit(columns: Sequence[Column], label: np.ndarray, iterations: int = 100) -> RidgeLogistic:
    """Starts from zero weights and the log odds of the mean label."""
    starts = np.cumsum([0, *(column.size for column in columns)])
    l2 = torch.cat([torch.full((column.size,), column.l2, dtype=torch.float64) for column in columns])
    target = torch.from_numpy(np.asarray(label, dtype=np.float64))
    weights = torch.zeros(int(starts[-1]), dtype=torch.float64)
    rate = float(target.mean().clamp(1e-6, 1 - 1e-6))
    bias = torch.tensor([np.log(rate / (1 - rate))], dtype=torch.float64)
    _minimise(weights.requires_grad_(), bias.requires_grad_(), columns, l2, target, iterations)
    return RidgeLogistic(weights.detach(), float(bias.detach()), starts[:-1].tolist())


def _minimise(
    weights: Tensor, bias: Tensor, columns: Sequence[Column], l2: Tensor, target: Tensor, iterations: int
) -> None:
    """Column by column, so that the weights that are read and summed at a time stay in cache."""
    optimiser = torch.optim.LBFGS(
        [weights, bias], max_iter=iterations, history_size=10, line_search_fn="strong_wolfe",
        tolerance_change=TOLERANCE * len(target), tolerance_grad=1e-6,
    )
    logits, one = torch.empty_like(target), np.empty(len(target))
    weights.grad, total = torch.empty_like(weights), logits.numpy()
    views = weights.detach().split([column.size for column in columns])
    sums = weights.grad.split([column.size for column in columns])

    def loss() -> Tensor:
        total.fill(float(bias.detach()))
        for column, view in zip(columns, views, strict=True):
            np.take(view.numpy(), column.codes, out=one, mode="clip")  # a code that is too large shows in the count
            np.add(total, one, out=total)
        with torch.no_grad():
            slope = torch.sigmoid(logits) - target
            value = F.binary_cross_entropy_with_logits(logits, target, reduction="sum") + l2 @ weights.square() / 2
            for column, sum_of in zip(columns, sums, strict=True):
                sum_of.numpy()[:] = np.bincount(column.codes, slope.numpy(), column.size)
            weights.grad.add_(l2 * weights)  # type: ignore[union-attr]
            bias.grad = slope.sum()[None]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
