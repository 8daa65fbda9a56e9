"""Batch normalisation, ReLU and dropout of hidden units in one pass forwards and one backwards.

    y = d * max(0, gamma (z - mean) / sqrt(var + eps) + beta),   d = 1 / (1 - p) with probability 1 - p, else 0

mean and var [H] over the batch. On a CPU with a compiler (models/compiled/kernels.py) two walks over the rows do what
nine do in plain torch, and the dropout mask comes from random bytes: there p is a multiple of 1/256.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.compiled import kernels


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, z: Tensor, gamma: Tensor, beta: Tensor, eps: float, drop: int, seed: int
    ) -> tuple[Tensor, ...]:
        library, (rows, width) = _library(z), z.shape
        mean, var, rstd = (torch.empty_like(gamma) for _ in range(3))
        y = torch.empty_like(z)
        library.norm_relu_dropout_forward(
            z.data_ptr(), z.dtype == torch.bfloat16, rows, width, gamma.data_ptr(), beta.data_ptr(), eps, drop, seed,
            torch.get_num_threads(), *(part.data_ptr() for part in (mean, var, rstd, y)))
        ctx.save_for_backward(z, gamma, mean, rstd, y)
        ctx.drop = drop
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        z, gamma, mean, rstd, y = ctx.saved_tensors
        dy = dy.to(z.dtype).contiguous()
        dz, dgamma, dbeta = torch.empty_like(z), torch.empty_like(gamma), torch.empty_like(gamma)
        _library(z).norm_relu_dropout_backward(
            dy.data_ptr(), z.data_ptr(), y.data_ptr(), z.dtype == torch.bfloat16, *z.shape, gamma.data_ptr(),
            mean.data_ptr(), rstd.data_ptr(), ctx.drop, torch.get_num_threads(), dgamma.data_ptr(), dbeta.data_ptr(),
            dz.data_ptr())
        return dz, dgamma, dbeta, None, None, None


def norm_relu_dropout(z: Tensor, norm: nn.BatchNorm1d, dropout: float) -> Tensor:
    """z [B, H] -> y [B, H]; in training it moves the running mean and variance of `norm`."""
    if not norm.training or len(z) == 1 or kernels.usable(z) is None:
        return F.dropout(torch.relu(norm(z)), dropout, norm.training)
    drop = min(round(256 * dropout), 255)
    seed = int(torch.randint(2**62, ())) if drop else 0
    y, mean, var = _Fused.apply(z, norm.weight, norm.bias, norm.eps, drop, seed)
    with torch.no_grad():
        norm.running_mean.lerp_(mean, norm.momentum)  # type: ignore[union-attr, arg-type]
        norm.running_var.lerp_(var * (len(z) / (len(z) - 1)), norm.momentum)  # type: ignore[union-attr, arg-type]
    return y


def _library(z: Tensor) -> ctypes.CDLL:
    library = kernels.usable(z)
    assert library is not None
    return library
