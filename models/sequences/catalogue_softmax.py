"""Cross-entropy over all items without the scores of the whole batch in memory, nor a second walk over them backwards.

    loss = mean over t of  log sum_j exp(u_t . v_j) - u_t . v_target(t)
    dloss / du_t = (sum_j p_tj v_j - v_target(t)) / T,   dloss / dv_j = sum_t (p_tj - [j = target(t)]) u_t / T

Of a few rows at a time, so that their scores stay in a core's cache, loss and gradients are made at once: the loss is a
scalar, so that what comes from above is one factor. The sums of exponentials divide vectors of width D in place of rows
as long as the catalogue.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from models.layers.linear import linear

HELD = 1 << 19  # scores that are there at once,
LEAST = 64  # and rows: every piece reads and writes the gradient of all items


class _CatalogueSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        rows = max(LEAST, HELD // len(items))
        of_users, of_items, loss = torch.empty_like(users), torch.zeros_like(items), users.new_zeros(())
        parts = (part.split(rows) for part in (users, target[:, None], of_users))
        for user, right, of_user in zip(*parts, strict=True):
            product = linear if len(user) == rows else F.linear  # oneDNN compiles for a shape, and the rest's is new
            scores = product(user, items)
            own, highest = scores.gather(1, right), scores.amax(1, keepdim=True)
            total = scores.sub_(highest).exp_().sum(1, keepdim=True)
            loss += (total.log() + highest - own).sum()
            scores.scatter_add_(1, right, -total)
            torch.div(product(scores, items.T), total, out=of_user)
            of_items += product(scores.T, (user / total).T)
        ctx.save_for_backward(of_users.div_(len(users)), of_items.div_(len(users)))
        return loss / len(users)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        of_users, of_items = ctx.saved_tensors
        return of_users * gradient, of_items * gradient, None


def catalogue_softmax(users: Tensor, items: Tensor, target: Tensor) -> Tensor:
    """users [T, D], items [n, D], target int64 [T], rows of `items` -> a scalar."""
    loss: Tensor = _CatalogueSoftmax.apply(users, items, target)
    return loss
