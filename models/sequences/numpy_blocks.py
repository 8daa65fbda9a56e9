"""The blocks of models/layers/sequence_blocks.py for one user, in numpy: at every place, or at the last one alone.

A softmax block at the last place makes no keys and values. With n = LN(x) [L, D] and a head of width d

    scores = n (W_K' q) + q . b_K      the bias is the same at every place, and falls out of the softmax
    mixed  = W_V (a n) + b_V           since the weights a add up to 1

so that a place costs D multiplications in place of 2 D D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from torch import nn

Matrix = np.ndarray


class NumpyBlock(Protocol):
    """x float32 [L, D], oldest first."""

    def every(self, x: Matrix) -> Matrix:
        """-> [L, D]."""

    def last(self, x: Matrix) -> Matrix:
        """-> [D], the last row of `every`."""


def array(parameter: Any) -> Matrix:
    """float32, not a copy."""
    found: Matrix = parameter.detach().numpy()
    return found


def logistic(x: Matrix) -> Matrix:
    """By tanh, which does not overflow."""
    half = np.float32(0.5)
    found: Matrix = half + half * np.tanh(half * x)
    return found


def silu(x: Matrix) -> Matrix:
    return x * logistic(x)


def softmax(scores: Matrix) -> Matrix:
    """Over the last axis, in place."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


class Linear:
    """x W' + b."""

    def __init__(self, layer: nn.Linear) -> None:
        self.weight = array(layer.weight)
        self.bias = array(layer.bias) if layer.bias is not None else np.float32(0)

    def __call__(self, x: Matrix) -> Matrix:
        return x @ self.weight.T + self.bias


class Norm:
    """Layer norm over the last axis."""

    def __init__(self, layer: nn.LayerNorm) -> None:
        self.gain, self.bias, self.epsilon = array(layer.weight), array(layer.bias), np.float32(layer.eps)

    def __call__(self, x: Matrix) -> Matrix:
        centred = x - np.add.reduce(x, -1, keepdims=True) / np.float32(x.shape[-1])
        spread = np.einsum("...d,...d->...", centred, centred)[..., None] / np.float32(x.shape[-1])
        centred /= np.sqrt(spread + self.epsilon)
        centred *= self.gain
        centred += self.bias
        return centred


class Distance:
    """The bias for how many actions ago a place lies; none where the block has none."""

    def __init__(self, layer: Any) -> None:
        self.bias = None if layer is None else array(layer.bias)

    def every(self, length: int) -> Matrix:
        """[heads or 1, L, L], -inf for what lies after."""
        place = np.arange(length)
        ago = place[:, None] - place
        found = np.zeros((1, length, length), np.float32) if self.bias is None else self.bias[:, np.maximum(ago, 0)]
        return np.where(ago < 0, -np.float32(np.inf), found)

    def last(self, length: int) -> Matrix:
        """[heads, L], or 0."""
        return np.zeros(1, np.float32) if self.bias is None else self.bias[:, :length][:, ::-1]


class SoftmaxAttention:
    """Of `Attention` after `norm`."""

    def __init__(self, layer: Any, norm: Any) -> None:
        self.heads, self.norm, self.out = layer.heads, Norm(norm), Linear(layer.out)
        self.into, self.distance = Linear(layer.into), Distance(layer.distance)
        width = self.out.weight.shape[0]
        self.head = width // self.heads
        self.scale = np.float32(1 / np.sqrt(self.head))
        query, key, value = np.split(self.into.weight, 3)
        self.query, self.query_bias = query, self.into.bias[:width]
        self.key, self.value = (part.reshape(self.heads, self.head, width) for part in (key, value))
        self.value_bias = self.into.bias[2 * width:]

    def every(self, x: Matrix) -> Matrix:
        """[L, D] -> [L, D]."""
        query, key, value = (part.reshape(len(x), self.heads, self.head).transpose(1, 0, 2)
                             for part in np.split(self.into(self.norm(x)), 3, axis=1))
        weights = softmax(query @ key.transpose(0, 2, 1) * self.scale + self.distance.every(len(x)))
        return self.out((weights @ value).transpose(1, 0, 2).reshape(x.shape))

    def last(self, x: Matrix) -> Matrix:
        """[L, D] -> [D]."""
        normed = self.norm(x)
        query = (self.query @ normed[-1] + self.query_bias).reshape(self.heads, 1, self.head) * self.scale
        weights = softmax((query @ self.key)[:, 0] @ normed.T + self.distance.last(len(x)))
        mixed = self.value @ (weights @ normed)[:, :, None]
        return self.out(mixed.ravel() + self.value_bias)


class Transformer:
    """"transformer"."""

    def __init__(self, block: Any) -> None:
        self.attention, self.norm = SoftmaxAttention(block.attention, block.norms[0]), Norm(block.norms[1])
        self.inner, self.outer = Linear(block.forward_layers[0]), Linear(block.forward_layers[3])

    def every(self, x: Matrix) -> Matrix:
        return self._forward(x + self.attention.every(x))

    def last(self, x: Matrix) -> Matrix:
        return self._forward(x[-1] + self.attention.last(x))

    def _forward(self, x: Matrix) -> Matrix:
        return x + self.outer(np.maximum(self.inner(self.norm(x)), 0))


class Ligr:
    """"ligr"."""

    def __init__(self, block: Any) -> None:
        self.attention, self.norm = SoftmaxAttention(block.attention, block.norms[0]), Norm(block.norms[1])
        self.gates = [Linear(gate) for gate in block.gates]
        self.into, self.out = Linear(block.forward_layers.into), Linear(block.forward_layers.out)

    def every(self, x: Matrix) -> Matrix:
        return self._forward(x + logistic(self.gates[0](x)) * self.attention.every(x))

    def last(self, x: Matrix) -> Matrix:
        return self._forward(x[-1] + logistic(self.gates[0](x[-1])) * self.attention.last(x))

    def _forward(self, x: Matrix) -> Matrix:
        gate, value = np.split(self.into(self.norm(x)), 2, axis=-1)
        return x + logistic(self.gates[1](x)) * self.out(silu(gate) * value)


class Hstu:
    """"hstu": its weights are no softmax's, so that keys and values are made."""

    def __init__(self, block: Any) -> None:
        self.heads, self.before, self.after = block.heads, Norm(block.before), Norm(block.after)
        self.into, self.out, self.distance = Linear(block.into), Linear(block.out), Distance(block.distance)

    def every(self, x: Matrix) -> Matrix:
        gate, value, query, key = np.split(silu(self.into(self.before(x))), 4, axis=1)
        value, query, key = (self._by_head(part) for part in (value, query, key))
        bias = self.distance.every(len(x))
        after = np.isinf(bias)
        weights = np.where(after, 0, silu(query @ key.transpose(0, 2, 1) + np.where(after, 0, bias)))
        mixed = weights / np.arange(1, len(x) + 1, dtype=np.float32)[:, None] @ value
        return x + self.out(self.after(mixed.transpose(1, 0, 2).reshape(x.shape)) * gate)

    def last(self, x: Matrix) -> Matrix:
        gate, value, query, key = np.split(silu(self.into(self.before(x))), 4, axis=1)
        value, query, key = (self._by_head(part) for part in (value, query[-1:], key))
        weights = silu((query @ key.transpose(0, 2, 1))[:, 0] + self.distance.last(len(x))) / np.float32(len(x))
        mixed = (weights[:, None] @ value).ravel()
        return x[-1] + self.out(self.after(mixed) * gate[-1])

    def _by_head(self, part: Matrix) -> Matrix:
        return part.reshape(len(part), self.heads, -1).transpose(1, 0, 2)


NUMPY_BLOCKS: dict[str, Callable[[Any], NumpyBlock]] = {"transformer": Transformer, "ligr": Ligr, "hstu": Hstu}
