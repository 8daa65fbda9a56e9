"""Crosses represented as products: each part of each such cross has factors of its own.

    p_c = f_{c,1}[id_1] * f_{c,2}[id_2] * ...        element-wise, [B, D]

A cross of sizes S_1 x S_2 costs (S_1 + S_2) D weights instead of one vector per pair seen, and says something about
pairs never seen together. The factors are not the fields' own embeddings: those serve other ends. (OptInter, arXiv
2108.01265, calls the two representations memorised and factorised.)
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from contracts.features.feature_spec import FeatureSpec

INITIAL_STD = 0.1


class FactorisedCrosses(nn.Module):
    """Reads the ids of both blocks; output [B, number of products x D]."""

    def __init__(self, spec: FeatureSpec, dim: int) -> None:
        super().__init__()
        crosses = spec.products()
        request = {slot.name: slot for slot in spec.block_ids("request")}
        sizes = [spec.slot(part).size for cross in crosses for part in cross.parts]
        starts = iter([0, *itertools.accumulate(sizes)])
        self.factors = [[(part in request, spec.slot(part).start if part in request else _candidate_start(spec, part),
                          next(starts)) for part in cross.parts] for cross in crosses]
        self.width = len(crosses) * dim
        self.weight = nn.Parameter(torch.randn(sum(sizes), dim) * INITIAL_STD)

    def subset(self, numbers: Sequence[int]) -> FactorisedCrosses:
        """These crosses alone, on the same factors."""
        part = copy.copy(self)
        part.factors = [self.factors[number] for number in numbers]
        part.width = len(numbers) * self.weight.shape[1]
        return part

    def forward(self, request_ids: Tensor, candidate_ids: Tensor) -> Tensor:
        """Ids [1 or B, W] and [B, W] -> [B, width]."""
        products = []
        for factors in self.factors:
            product = self.weight.new_ones(1, 1)
            for in_request, column, start in factors:
                ids = (request_ids if in_request else candidate_ids)[:, column]
                product = product * nn.functional.embedding(ids + start, self.weight)
            products.append(product.expand(len(candidate_ids), -1))
        return torch.cat(products, dim=1)


def _candidate_start(spec: FeatureSpec, part: str) -> int:
    return next(slot.start for slot in spec.block_ids("candidate") if slot.name == part)
