"""Crosses represented as products: each part of each such cross has factors of its own.

    p_c = f_{c,1}[id_1] * f_{c,2}[id_2] * ...        element-wise, [B, D]

A cross of sizes S_1 x S_2 costs (S_1 + S_2) D weights instead of one vector per pair seen, and says something about
pairs never seen together. The factors are not the fields' own embeddings: those serve other ends. (OptInter, arXiv
2108.01265, calls the two representations memorised and factorised.)

The gradient is dense, or sparse for who moves only the rows seen (models/optimisation/optimisers.py); then row 0, which
means that the first part of the first cross is absent, has none.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from contracts.features.feature_spec import PADDING, FeatureSpec
from models.layers.own_rows import drawn, own_rows

INITIAL_STD = 0.1


class FactorisedCrosses(nn.Module):
    """Reads the ids of both blocks; output [B, number of products x D].

    `own` and `look_up` are those of FusedEmbedding.
    """

    sparse = False
    look_up: Callable[[Tensor], Tensor] | None = None

    def __init__(self, spec: FeatureSpec, dim: int) -> None:
        super().__init__()
        crosses = spec.products()
        request = {slot.name: slot for slot in spec.block_ids("request")}
        parts = [part for cross in crosses for part in cross.parts]
        ends = [*itertools.accumulate(spec.slot(part).size for part in parts)]
        self.starts, self.table_rows = [*zip(parts, [0, *ends[:-1]], strict=True)], ends[-1]
        starts = iter([0, *ends])
        self.factors = [[(part in request, spec.slot(part).start if part in request else _candidate_start(spec, part),
                          next(starts)) for part in cross.parts] for cross in crosses]
        self.width = len(crosses) * dim
        self.weight, self.own = nn.Parameter(drawn(self.table_rows, dim, INITIAL_STD)), own_rows()

    def columns(self) -> list[tuple[str, int]]:
        """(slot, row of its id 0) of every part of every cross."""
        return self.starts

    def subset(self, numbers: Sequence[int]) -> FactorisedCrosses:
        """These crosses alone, on the same factors."""
        part = copy.copy(self)
        part.factors = [self.factors[number] for number in numbers]
        part.width = len(numbers) * self.weight.shape[1]
        return part

    def forward(self, request_ids: Tensor, candidate_ids: Tensor) -> Tensor:
        """Ids [1 or B, W] and [B, W] -> [B, width]."""
        rows = [(request_ids if in_request else candidate_ids)[:, column] + start
                for factors in self.factors for in_request, column, start in factors]
        vectors = iter(self._vectors(torch.cat(rows)).split([len(r) for r in rows]))
        products = [functools.reduce(torch.mul, [next(vectors) for _ in factors]) for factors in self.factors]
        return torch.cat([product.expand(len(candidate_ids), -1) for product in products], dim=1)

    def _vectors(self, rows: Tensor) -> Tensor:
        if self.look_up is not None:
            return self.look_up(rows)
        padding = PADDING if self.sparse and not self.weight.is_cuda else None
        return nn.functional.embedding(rows, self.weight, padding_idx=padding, sparse=self.sparse)


def _candidate_start(spec: FeatureSpec, part: str) -> int:
    return next(slot.start for slot in spec.block_ids("candidate") if slot.name == part)
