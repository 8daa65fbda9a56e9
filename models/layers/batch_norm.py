"""Batch normalisation of the hidden units of every MLP while it is trained (Ioffe & Szegedy, 2015), and nowhere else;
so of layers that multiply (models/layers/factorised_layers.py).

    z = W x + b,   y = gamma (z - mean) / sqrt(var + eps) + beta,   then ReLU and dropout

`insert` puts it in before training, `fold` takes it out afterwards: with running mean and variance y is linear in x,

    W' = s W,   b' = s (b - mean) + beta,   s = gamma / sqrt(var + eps)

so that files, bundles, servers and split scorers know linear layers alone, and nothing of it is in a state dict that
leaves training. In between b says nothing, as the mean is taken away again: it is 0 and not trained, which saves every
update a walk over the gradients of z.

Federated clients train without it: the running means of one client's rows would tell of them. So does a network that
starts from a parent's weights, which are folded: it begins as exactly the function that the parent is.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

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


def hidden_units(network: nn.Module) -> bool:
    """Whether any stand between inputs and logit, normalised or not, such as an MLP's outputs that others read."""
    return any(stack.hidden or (isinstance(stack, Mlp) and len(stack.output_bias) > 1) for stack in _stacks(network))


def stack_names(network: nn.Module) -> list[str]:
    """Of the modules that hold hidden layers."""
    return [name for name, module in network.named_modules() if isinstance(module, Mlp | FactorisedLayers)]


def insert(network: nn.Module) -> None:
    """Behind every hidden layer of the network, before its parameters are handed to an optimiser."""
    for mlp in _stacks(network):
        mlp.norms = nn.ModuleList(HiddenNorm(width) for width in mlp.hidden)
        for layer in mlp.hidden_layers():
            if not isinstance(layer, FactorisedLayer):
                nn.init.zeros_(layer.bias.requires_grad_(False))


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
