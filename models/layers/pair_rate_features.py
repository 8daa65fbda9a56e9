"""Rates of value pairs as inputs of a ranker: two look-ups and a head per pair, from ids that the blocks hold anyway.

    input_p = (logit of the rate of (u, v) - mean_p) / std_p          u, v: the values of the pair's slots in one row

Mean and deviation are those over the impressions of the statistics window. A slot of several values gives the mean of
its logits over those that are not padding. Ids never seen in the window (1, new ids, or 0) read the vector that the
encoder gives to a value it knows nothing about. A pair that a table does not hold gets the two values' own rates,
logit = b + r_u + r_v, where r is 0 for an unknown value, and says so in a second input: 1 where the pair is missing.
With counts beside the vectors the rate is (clicks + s g) / (n + s), g that of the head, and the second input is the
head's share of it, s / (n + s): 1 where the pair was never seen.

A head (CrossNet of the paper) turns the vectors of two values into the logit of their rate, one per pair of fields:

    dot   w . (u * v) + a u_D + c v_D + b              the last number of a vector is the value's own effect
    mlp   linear in [u, v, u * v] + MLP(u, v, u * v)   one hidden layer

Both start at the rate of the pair as a whole. Shapes: [..., D], [..., D] -> [...]; leading axes are broadcast.

Nothing here needs the graph or its library. Frozen unless `fine_tune`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor, nn

from contracts.features.feature_spec import PADDING, FeatureSpec, IdSlot, PairModel

NEAR = 1e-6  # of rates, from 0 and 1


class DotHead(nn.Module):
    """`weight` [D - 1] of the products; `left` and `right` weigh the values' own effects."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim - 1))
        self.left, self.right = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        together = (left[..., :-1] * right[..., :-1]) @ self.weight
        return together + self.left[0] * left[..., -1] + self.right[0] * right[..., -1] + self.bias[0]


class MlpHead(nn.Module):
    """The first layer is kept as three parts: in a request, that of the requester is computed once."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.left, self.right, self.product = (nn.Linear(dim, dim + 1, bias=False) for _ in range(3))
        self.hidden_bias = nn.Parameter(torch.zeros(dim))
        self.output = nn.Parameter(torch.zeros(dim))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        mixed = self.left(left) + self.right(right) + self.product(left * right)
        return mixed[..., 0] + torch.relu(mixed[..., 1:] + self.hidden_bias) @ self.output + self.bias[0]


def build_head(kind: str, dim: int) -> nn.Module:
    """The head of vectors [D]; `kind` is "dot" or "mlp"."""
    return DotHead(dim) if kind == "dot" else MlpHead(dim)


class VectorScorer(nn.Module):
    """vectors [N, D] of all values of all slots in pairs, and a head per pair."""

    channels = 1

    def __init__(self, nodes: int, pairs: int, model: PairModel) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.zeros(nodes, model.dim))
        self.heads = nn.ModuleList(build_head(model.head, model.dim) for _ in range(pairs))

    def forward(self, pair: int, left: Tensor, right: Tensor) -> Tensor:
        """Rows of values [...], [...] (broadcast) -> [..., 1] logits."""
        return self.heads[pair](self.vectors[left], self.vectors[right])[..., None]


class CountScorer(VectorScorer):
    """codes int64 [E], sorted as a table's, with clicks and exposure [E]; strength [P]: s above."""

    channels = 2
    codes: Tensor
    clicks: Tensor
    exposure: Tensor
    strength: Tensor

    def __init__(self, nodes: int, pairs: int, model: PairModel) -> None:
        super().__init__(nodes, pairs, model)
        self.nodes = nodes
        self.register_buffer("codes", torch.zeros(model.entries, dtype=torch.int64))
        self.register_buffer("clicks", torch.zeros(model.entries))
        self.register_buffer("exposure", torch.zeros(model.entries))
        self.register_buffer("strength", torch.ones(pairs))

    def forward(self, pair: int, left: Tensor, right: Tensor) -> Tensor:
        """Rows of values [...], [...] (broadcast) -> [..., 2]: logit, and the share of the head in its rate."""
        rate = torch.sigmoid(super().forward(pair, left, right)[..., 0])
        place, held = found_in(self.codes, (pair * self.nodes + left) * self.nodes + right)
        shown, clicks = (torch.where(held, counts[place], 0.0) for counts in (self.exposure, self.clicks))
        share = self.strength[pair] / (shown + self.strength[pair])
        corrected = share * rate + clicks / (shown + self.strength[pair])
        return torch.stack([torch.logit(corrected, eps=NEAR), share], dim=-1)


def found_in(codes: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Where each of `wanted` stands among the sorted codes, and whether it does."""
    place = torch.searchsorted(codes, wanted).clamp(max=len(codes) - 1)
    return place, codes[place] == wanted


class TableScorer(nn.Module):
    """codes int64 [E], sorted: (pair x N + left row) x N + right row; logits [E]; own [P, N]: r above; base [P]: b."""

    channels = 2
    codes: Tensor
    logits: Tensor
    own: Tensor
    base: Tensor

    def __init__(self, nodes: int, pairs: int, model: PairModel) -> None:
        super().__init__()
        self.nodes = nodes
        self.register_buffer("codes", torch.zeros(model.entries, dtype=torch.int64))
        self.register_buffer("logits", torch.zeros(model.entries))
        self.register_buffer("own", torch.zeros(pairs, nodes))
        self.register_buffer("base", torch.zeros(pairs))

    def forward(self, pair: int, left: Tensor, right: Tensor) -> Tensor:
        """Rows of values [...], [...] (broadcast) -> [..., 2]: logit, and 1 where the table lacks the pair."""
        code = (pair * self.nodes + left) * self.nodes + right
        guess = self.base[pair] + self.own[pair][left] + self.own[pair][right]
        if not len(self.codes):
            return torch.stack([guess, torch.ones_like(guess)], dim=-1)
        place, held = found_in(self.codes, code)
        return torch.stack([torch.where(held, self.logits[place], guess), (~held).float()], dim=-1)


class PairRateFeatures(nn.Module):
    """`width` inputs a row: one per pair and channel. A spec without pairs gives none."""

    mean: Tensor
    std: Tensor

    def __init__(self, spec: FeatureSpec, model: PairModel) -> None:
        super().__init__()
        self.model = model
        self.parts = [tuple(_place(spec, part) for part in field.parts) for field in spec.pair_rates()]
        sizes = {slot.name: slot.size for pair in self.parts for slot, _ in pair}
        ends = list(accumulate(sizes.values()))
        self.starts = {name: end - size for (name, size), end in zip(sizes.items(), ends, strict=True)}
        kind = TableScorer if model.head == "table" else CountScorer if model.entries else VectorScorer
        self.scorer = kind(ends[-1], len(self.parts), model)
        self.channels = kind.channels
        self.numbers: Sequence[int] = range(len(self.parts))
        self.width = len(self.parts) * kind.channels
        self.register_buffer("mean", torch.zeros(self.width))
        self.register_buffer("std", torch.ones(self.width))
        self.requires_grad_(model.fine_tune)

    def subset(self, numbers: Sequence[int]) -> PairRateFeatures:
        """These pairs alone, on the same vectors and heads."""
        part = copy.copy(self)
        part.numbers, part.width = [self.numbers[number] for number in numbers], len(numbers) * self.channels
        return part

    def forward(self, request: Tensor, candidate: Tensor) -> Tensor:
        """Ids of the blocks, [1 or B, ...] and [B, ...] -> [B, width]; float32 whatever the network's precision."""
        with torch.autocast(candidate.device.type, enabled=False):
            columns = [self._pair(pair, request, candidate).expand(len(candidate), -1) for pair in self.numbers]
            return torch.cat(columns, dim=1)

    @torch.no_grad()
    def rates(self, pair: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Predicted rates of ids local to the pair's slots, [...], [...] (broadcast) -> [...]."""
        ids = zip(self.parts[pair], (left, right), strict=True)
        rows = [torch.from_numpy(np.asarray(values)).long() + self.starts[slot.name] for (slot, _), values in ids]
        return torch.sigmoid(self.scorer(pair, *rows)[..., 0]).numpy()

    def _pair(self, pair: int, request: Tensor, candidate: Tensor) -> Tensor:
        """[1 or B, channels], standardised."""
        found, place = self._logits(pair, request, candidate), slice(pair * self.channels, (pair + 1) * self.channels)
        return (found - self.mean[place]) / self.std[place]

    def _logits(self, pair: int, request: Tensor, candidate: Tensor) -> Tensor:
        """[1 or B, channels]"""
        (left, left_in_candidate), (right, right_in_candidate) = self.parts[pair]
        lefts = _ids(candidate if left_in_candidate else request, left)
        rights = _ids(candidate if right_in_candidate else request, right)
        found = self.scorer(pair, *(ids.long() + self.starts[slot.name] for ids, slot in (
            (lefts[:, :, None], left), (rights[:, None, :], right))))
        if left.width == right.width == 1:
            return found[:, 0, 0]
        present = ((lefts != PADDING)[:, :, None] & (rights != PADDING)[:, None, :]).to(found.dtype)[..., None]
        mean = (found * present).sum(dim=(1, 2)) / present.sum(dim=(1, 2)).clamp(min=1.0)
        nothing = present.sum(dim=(1, 2)) == 0
        return torch.where(nothing, found[:, 0, 0], mean)


def _place(spec: FeatureSpec, part: str) -> tuple[IdSlot, bool]:
    """The slot as laid out in its block, and whether that is the candidate's. Raises DataError without such a slot."""
    candidate = next((slot for slot in spec.block_ids("candidate") if slot.name == part), None)
    request = next((slot for slot in spec.block_ids("request") if slot.name == part), None)
    return (candidate, True) if candidate else (request or spec.slot(part), False)


def _ids(block: Tensor, slot: IdSlot) -> Tensor:
    return block[:, slot.start : slot.start + slot.width]
