"""Further inputs of a number, by which a layer behind them can bend where the number's effect bends (Gorishniy et al.,
NeurIPS 2022, arXiv 2203.05556, without their own layers: the network's first one takes that part).

    piecewise_linear   clamp((z - e_t) / (e_(t+1) - e_t), 0, 1)      a ramp between any two neighbouring edges
    periodic           h sin(2 pi c_k z), h cos(2 pi c_k z)           c_k ~ N(0, SPREAD), trained; h = HEIGHT

Waves start as small as the values' vectors do: louder ones drown them, and a cross of two values is not learned beside
a number that says nothing.

z is the number as scaled for a dense input, and stays one beside them: beyond the outer edges the effect is a line.
Edges are those of the field's finest bins of at most MOST_BINS, else of its first ones, scaled as z is; a field without
bins has no ramps.
Shapes: dense [B, n] -> [B, width].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from contracts.config.section import Numbers, Side
from contracts.features.encoding import scale
from contracts.features.feature_spec import DenseSlot, FeatureField, FeatureSpec

MOST_BINS = 32
WAVES, SPREAD = 8, 0.5  # frequencies of a number, and their deviation at the start
HEIGHT = 0.1
NARROWEST = 1e-4  # ramp, in standard deviations of the number


class NumberEncoding(Protocol):
    """`columns` [width]: the dense column that each further input is made of."""

    columns: list[int]

    def __call__(self, dense: Tensor) -> Tensor: ...


class PiecewiseLinear(nn.Module):
    """`starts` and `steepness` [width] of the ramps."""

    starts: Tensor
    steepness: Tensor
    source: Tensor

    def __init__(self, edges: Sequence[np.ndarray]) -> None:
        """`edges` of each dense column, scaled and rising."""
        super().__init__()
        self.columns = [column for column, one in enumerate(edges) for _ in one[1:]]
        starts = np.concatenate([one[:-1] for one in edges])
        widths = np.concatenate([np.diff(one) for one in edges])
        self._keep("source", np.array(self.columns, dtype=np.int64))
        self._keep("starts", starts.astype(np.float32))
        self._keep("steepness", (1.0 / np.maximum(widths, NARROWEST)).astype(np.float32))

    def _keep(self, name: str, values: np.ndarray) -> None:
        self.register_buffer(name, torch.from_numpy(values), persistent=False)  # the feature spec tells them again

    def forward(self, dense: Tensor) -> Tensor:
        return ((dense.index_select(1, self.source) - self.starts) * self.steepness).clamp(0.0, 1.0)


class Periodic(nn.Module):
    """`frequencies` [n, WAVES]; per number all sines, then all cosines."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.columns = [column for column in range(numbers) for _ in range(2 * WAVES)]
        self.frequencies = nn.Parameter(torch.randn(numbers, WAVES) * SPREAD)

    def forward(self, dense: Tensor) -> Tensor:
        turns = dense[:, :, None] * (2 * math.pi * self.frequencies)
        return HEIGHT * torch.cat([turns.sin(), turns.cos()], dim=2).flatten(1)


def build(numbers: Numbers, spec: FeatureSpec, sides: tuple[Side, ...]) -> nn.Module | None:
    """For the dense inputs of these sides; None where they stay as they are, or there are none."""
    slots = spec.dense_slots(*sides)
    if not slots or numbers == "plain":
        return None
    if numbers == "periodic":
        return Periodic(len(slots))
    edges = [scaled_edges(spec.by_name[slot.field]) for slot in slots]
    return PiecewiseLinear(edges) if any(len(one) > 1 for one in edges) else None


def scaled_edges(field: FeatureField) -> np.ndarray:
    """Edges [E] between the field's bins as a dense input has them, without repetition."""
    fine = [bins for bins in field.edges if bins <= MOST_BINS] or [*field.edges][:1]
    raw = field.edges[max(fine)] if fine else ()
    return np.unique(scale(np.asarray(raw, dtype=np.float64), field))


def width(encoding: nn.Module | None) -> int:
    """Of what it adds; 0 of none."""
    return 0 if encoding is None else len(cast(NumberEncoding, encoding).columns)


def sources(encoding: nn.Module | None, slots: Sequence[DenseSlot]) -> list[DenseSlot]:
    """[width]: the slot that each further input is made of; `slots` are those of the encoding's sides."""
    return [] if encoding is None else [slots[column] for column in cast(NumberEncoding, encoding).columns]
