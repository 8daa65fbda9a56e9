"""Batch normalisation of the hidden units of every MLP while it is trained (Ioffe & Szegedy, 2015), and nowhere else;
so of layers that multiply (models/layers/factorised_layers.py).

    z = W x + b,   y = gamma (z - mean) / sqrt(var + eps) + beta,   then ReLU and dropout

`insert` puts it in before training, `fold` takes it out afterwards: with running mean and variance y is linear in x,

    W' = s W,   b' = s (b - mean) + beta,   s = gamma / sqrt(var + eps)

so that files, bundles, servers and split scorers know linear layers alone, and nothing of it is in a state dict that
leaves training. In between b says nothing, as the mean is taken away again: it is 0 and not trained, which saves every
update a walk over the gradients of z.

A network that starts from a parent's weights, which are folded, begins as exactly the function that the parent is:

    beta = b,   gamma = sqrt(1 + eps)                              `insert` with `kept`: of mean 0 and variance 1
    beta += s (m - mean),   gamma *= sqrt((v + eps) / (var + eps))   `settle`: m and v are those of z over some rows

Neither changes y in evaluation mode, so that training goes on from there with normalised units.

Federated clients train without it: the running means of one client's rows would tell of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.examples.batches import Batch
from models.layers.embedding import FusedEmbedding
from models.layers.factorised_layers import FactorisedLayer, FactorisedLayers
from models.layers.mlp import Mlp, SplitLinear

SMALL = 0.1  # of the usual spread of embeddings


class HiddenNorm(nn.BatchNorm1d):
    """A batch of one row, which has no variance, is normalised as in evaluation."""

    def forward(self, x: Tensor) -> Tensor:
        """[B, H] -> [B, H]."""
        if self.training and len(x) == 1:
            return functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


@torch.no_grad()
def shrink_embeddings(network: nn.Module) -> None:
    """Vectors that start near zero let frequent values speak before rare ones; normalisation brings their scale back.

    A network without hidden layers keeps its start: nothing would.
    """
    if hidden_layers(network):
        for module in network.modules():
            if isinstance(module, FusedEmbedding):
                module.weight.mul_(SMALL)


def hidden_layers(network: nn.Module) -> bool:
    """Whether the network has any that would be normalised."""
    return any(mlp.hidden for mlp in _stacks(network))


@torch.no_grad()
def insert(network: nn.Module, kept: bool = False) -> None:
    """Behind every hidden layer of the network, before its parameters are handed to an optimiser; `kept`: so that in
    evaluation mode it is the function that it was."""
    for mlp in _stacks(network):
        mlp.norms = nn.ModuleList(HiddenNorm(width) for width in mlp.hidden).train(mlp.training)
        for layer, norm in zip(mlp.hidden_layers(), mlp.norms, strict=True):
            if kept:
                nn.init.constant_(norm.weight, math.sqrt(1.0 + norm.eps))  # type: ignore[arg-type, operator]
            if not isinstance(layer, FactorisedLayer):
                if kept:
                    norm.bias.copy_(layer.bias)  # type: ignore[operator, union-attr]
                nn.init.zeros_(layer.bias.requires_grad_(False))


@torch.no_grad()
def settle(network: nn.Module, batches: Iterable[Batch]) -> None:
    """Running means and variances become those over the rows of the batches, at least two, of the network in evaluation
    mode, in which it is left and whose function stays."""
    network.eval()
    found = [(norm, _Moments(norm)) for mlp in _stacks(network) for norm in mlp.norms or ()]
    for batch in batches:
        network(batch.request, batch.candidate)
    for norm, moments in found:
        _settle(norm, *moments.taken())  # type: ignore[arg-type]


class _Moments:
    """Of all that comes into a module, [B, H] at a time, until they are taken."""

    def __init__(self, module: nn.Module) -> None:
        self.rows = 0
        self.sums: Tensor | float = 0.0
        self.squares: Tensor | float = 0.0
        self.hook = module.register_forward_pre_hook(self._add)

    def _add(self, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        z = inputs[0].double()
        self.rows += len(z)
        self.sums = self.sums + z.sum(0)
        self.squares = self.squares + z.square().sum(0)

    def taken(self) -> tuple[Tensor, Tensor]:
        """Mean and variance [H], float64."""
        self.hook.remove()
        mean = torch.as_tensor(self.sums) / self.rows
        variance = torch.as_tensor(self.squares) / self.rows - mean.square()
        return mean, variance.clamp_(min=0.0) * self.rows / (self.rows - 1)


def _settle(norm: HiddenNorm, mean: Tensor, variance: Tensor) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    root = (norm.running_var.double() + norm.eps).sqrt()
    gamma = norm.weight.double()
    norm.bias.add_(gamma / root * (mean - norm.running_mean.double()))
    norm.weight.copy_(gamma / root * (variance + norm.eps).sqrt())
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(variance)


@torch.no_grad()
def fold(network: nn.Module) -> None:
    """The same function of evaluation mode, without normalisation; a network that has none stays as it is."""
    for mlp in _stacks(network):
        for layer, norm in zip(mlp.hidden_layers(), mlp.norms or (), strict=mlp.norms is not None):
            _fold(layer, norm)  # type: ignore[arg-type]
        mlp.norms = None


def _stacks(network: nn.Module) -> Iterator[Mlp | FactorisedLayers]:
    return (module for module in network.modules() if isinstance(module, Mlp | FactorisedLayers))


def _fold(layer: SplitLinear | nn.Linear | FactorisedLayer, norm: HiddenNorm) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    if isinstance(layer, FactorisedLayer):
        layer.scale(scale, norm.bias.double() - scale * norm.running_mean.double())
        return
    layer.bias.requires_grad_(True)
    matrices = (layer.request, layer.candidate) if isinstance(layer, SplitLinear) else (layer.weight,)
    for matrix in matrices:
        matrix.copy_(scale[:, None] * matrix.double())
    layer.bias.copy_(scale * (layer.bias.double() - norm.running_mean.double()) + norm.bias.double())
