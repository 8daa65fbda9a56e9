"""Adam for the fused embedding weight: only the rows of the batch move.

    m, v    as Adam (Kingma & Ba, 2015), kept and corrected per row by the number of steps in which the row was seen
    g       <- g + l2 * w,                     l2 per row
    w       <- w - lr * pace * (m' / (sqrt(v') + eps) + decay * w),     pace per row

With `by_row` a row has one v, of the mean square of its gradient, in place of one per number: with D numbers a row and
float32 its optimiser takes 4 D + 8 bytes in place of 8 D + 4.

A row that the batch lacks keeps its weight, moments and count, so that a step costs what the batch touches and not the
size of the table, and decay falls on ids as often as they are seen. `l2` is a Gaussian prior on the vectors: a row seen
in a share p of the batches takes 1/p of the penalty in each of them, all of it over an epoch, so that a rare value,
for which few rows speak, stays near zero (frequency-aware regularisation). `pace` makes up for the steps that a rare
row does not take (models/optimisation/row_shares.py). Equal rows are summed and all of a row's
update is made in two walks over the batch's ids (models/compiled/kernels.py), or in plain torch after one sort of them:
faster on a CPU than `coalesce`, and at a million rows than a dense gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from contracts.features.feature_spec import PADDING
from models.compiled import kernels

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class RowGradient(NamedTuple):
    """rows [U], distinct (but for the padding), of the weight; values [U, D]."""

    rows: Tensor
    values: Tensor


def row_gradient(gradient: Tensor, place: Tensor | None = None) -> RowGradient:
    """A sparse gradient [N, D] with rows in any order and number -> one sum per row.

    `place` int32 [N], all -1, is room for a table that finds a row again without sorting; it is left as it was.
    """
    return summed_rows(gradient._indices()[0], gradient._values(), place)


def summed_rows(rows: Tensor, values: Tensor, place: Tensor | None = None) -> RowGradient:
    """rows [n] in any order and number with values [n, D] -> one sum per row; rows that are distinct, as the gradient
    of an embedding has them (models/layers/table_reads.py), are handed on as they are."""
    if values.is_cuda:
        return padded_rows(rows, values)
    library = kernels.usable(values)
    if library is None or place is None or values.dtype != torch.float32 or not rows.is_contiguous():
        distinct, inverse = torch.unique(rows, return_inverse=True)
        return RowGradient(distinct, values.new_zeros(len(distinct), values.shape[1]).index_add_(0, inverse, values))
    distinct, total = torch.empty_like(rows), torch.empty_like(values)
    found = library.summed_rows(rows.data_ptr(), values.data_ptr(), *values.shape, place.data_ptr(),
                                distinct.data_ptr(), total.data_ptr())
    return RowGradient(rows, values) if found == len(rows) else RowGradient(distinct[:found], total[:found])


def padded_rows(rows: Tensor, values: Tensor) -> RowGradient:
    """As `summed_rows`, of as many rows as came in, so that no one waits for a GPU to say how many are distinct: those
    that are left over are the padding's with gradients of 0, as is the padding's own, which moves nothing."""
    ordered, order = torch.sort(rows)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    place = first.cumsum(0) - 1
    distinct = torch.full_like(ordered, PADDING).scatter_(0, place, ordered)
    total = torch.zeros_like(values).index_add_(0, place, values[order])
    return RowGradient(distinct, total.masked_fill_((distinct == PADDING)[:, None], 0.0))


class RowAdam:
    """Keeps the moments of one embedding weight [N, D]; `l2` and `pace` [N] or None."""

    def __init__(
        self, weight: torch.nn.Parameter, learning_rate: float, decay: float, l2: Tensor | None = None,
        pace: Tensor | None = None, by_row: bool = False,
    ) -> None:
        self.weight, self.learning_rate, self.decay, self.l2, self.pace = weight, learning_rate, decay, l2, pace
        self.mean = torch.zeros_like(weight)
        self.square = torch.zeros_like(weight[:, :1] if by_row else weight, memory_format=torch.contiguous_format)
        self.seen = torch.zeros(len(weight), 1, dtype=weight.dtype, device=weight.device)
        self.place = torch.full((len(weight),), -1, dtype=torch.int32) if weight.device.type == "cpu" else None

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of it, [N, ...] each."""
        return {"weight": self.weight, "mean": self.mean, "square": self.square, "seen": self.seen}

    def gradient(self) -> RowGradient | None:
        """Of the weight, one sum per row; None where it has none."""
        return None if self.weight.grad is None else row_gradient(self.weight.grad, self.place)

    def summed(self, rows: Tensor, values: Tensor) -> RowGradient:
        """Of gradients [n, D] of rows [n] that came from elsewhere, one sum per row."""
        return summed_rows(rows, values, self.place)

    @torch.no_grad()
    def step(self, rows: Tensor, gradient: Tensor) -> None:
        """rows [U] distinct, gradient [U, D]."""
        library = kernels.usable(self.weight)
        if library is not None and gradient.is_contiguous() and rows.is_contiguous():
            state = (self.weight, self.mean, self.square, self.seen)
            library.row_adam(
                *(tensor.data_ptr() for tensor in state),
                *(None if tensor is None else tensor.data_ptr() for tensor in (self.l2, self.pace)), rows.data_ptr(),
                gradient.data_ptr(), *gradient.shape, self.square.shape[1], self.learning_rate, self.decay, BETA1,
                BETA2, EPSILON, torch.get_num_threads())
        else:
            self._step(rows, gradient)

    def _step(self, rows: Tensor, gradient: Tensor) -> None:
        old = self.weight[rows]
        if self.l2 is not None:
            gradient = torch.addcmul(gradient, self.l2[rows][:, None], old)
        mean = torch.lerp(self.mean[rows], gradient, 1.0 - BETA1)
        squared = gradient.square()
        by_row = self.square.shape[1] < squared.shape[1]
        square = torch.lerp(self.square[rows], squared.mean(1, keepdim=True) if by_row else squared, 1.0 - BETA2)
        seen = self.seen[rows] + 1.0
        self.mean[rows], self.square[rows], self.seen[rows] = mean, square, seen
        root = (square / (1.0 - BETA2**seen)).sqrt_().add_(EPSILON)
        step = (mean / (1.0 - BETA1**seen)) / root + self.decay * old
        rate = self.learning_rate if self.pace is None else self.learning_rate * self.pace[rows][:, None]
        self.weight[rows] = old - rate * step
