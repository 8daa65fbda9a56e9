"""Which fields a logit hangs on, to first order: one gradient for all fields instead of one forward pass for each.

    logit(x) - logit(x without the field)  ~  sum over the field's columns of  dlogit/dx (x - x of missing values)

x are the inputs of the network's first layer, as its embedding gives them. A column of a cross or of a pair rate counts
for each of its parts. Good for choosing the fields to look at, not for a figure. Slopes come from the ranker as it
serves where that knows them (models/inference/split_ranker.py), else from torch.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import BlockName, FeatureSpec
from models.examples.batches import FeatureBlock
from models.inference import split_ranker
from models.inference.split_din import SplitDin
from models.inference.split_ranker import Begun, ServedRanker, SplitDcn, SplitDnn
from models.layers.embedding import FusedEmbedding
from models.preranking.fscd import input_fields
from serving.request.request_features import block

BLOCKS: tuple[BlockName, BlockName] = ("request", "candidate")
Split = SplitDnn | SplitDcn | SplitDin


class _Recorder(nn.Module):
    """An embedding whose outputs become leaves, and are kept for the thread that asked."""

    def __init__(self, embedding: FusedEmbedding) -> None:
        super().__init__()
        self.inside, self.kept = embedding, threading.local()

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> tuple[Tensor, ...]:
        self.kept.leaves = tuple(part.detach().requires_grad_() for part in self.inside(request, candidate))
        return self.kept.leaves

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inside, name)


class Sensitivity:
    """Of a network that reads its blocks through a `FusedEmbedding`; others have none. `fields` name the columns that
    `changes` returns; `owners` says of every input column of a block whose it is, [columns, F]. `served` is the network
    as it serves, where somebody has it."""

    def __init__(
        self, network: nn.Module, spec: FeatureSpec, fields: Sequence[str], served: ServedRanker | None = None
    ) -> None:
        embedding = getattr(network, "embedding", None)
        self._network: nn.Module | None = None
        self._served = split_ranker.of(network) if served is None else served
        self._missing: tuple[np.ndarray, np.ndarray] | None = None
        if isinstance(embedding, FusedEmbedding):
            self._recorder, self._network = _Recorder(embedding), copy.copy(network)
            self._network._modules = {**network._modules, "embedding": self._recorder}
            self.owners = [_owners(embedding, spec, side, fields) for side in BLOCKS]
        if isinstance(self._served, SplitDin):
            self.owners[1] = torch.cat([self.owners[1], _interest_owners(self._served, fields)])

    def changes(
        self, request: Encoded, candidate: Encoded, missing: tuple[Encoded, Encoded], begun: Begun | None = None
    ) -> np.ndarray | None:
        """A row of the request and rows [n, ...] of candidates, and one row of missing values each -> [n, F]: how far
        each logit falls, roughly. None for a network that cannot be asked. `begun` is what the ranker has made of the
        request, where somebody has it."""
        if self._network is None:
            return None
        if isinstance(self._served, Split):
            begun = self._served.begin(request) if begun is None else begun
            return self._by_slopes(self._served, begun, candidate, missing)
        repeated = Encoded(*(part.repeat(len(candidate.ids), axis=0) for part in request))
        found = self._by_torch(block(repeated), block(candidate), (block(missing[0]), block(missing[1])))
        return None if found is None else found.numpy()

    def _by_slopes(
        self, served: Split, begun: Begun, candidate: Encoded, missing: tuple[Encoded, Encoded]
    ) -> np.ndarray:
        if self._missing is None:
            self._missing = served.inputs.request(missing[0]), served.right(served.begin(missing[0]), missing[1])
        parts = zip(served.slopes(begun, candidate), self._missing, self.owners, strict=True)
        left, right = (((here - gone) * slope) @ owners.numpy() for (here, slope), gone, owners in parts)
        return left + right

    def _by_torch(
        self, request: FeatureBlock, candidate: FeatureBlock, missing: tuple[FeatureBlock, FeatureBlock]
    ) -> Tensor | None:
        assert self._network is not None
        with torch.inference_mode(False), torch.enable_grad():
            self._recorder.kept.leaves = ()
            logits = self._network(request, candidate)
            leaves = self._recorder.kept.leaves
            if not leaves:
                return None
            slopes = torch.autograd.grad(logits.sum(), leaves, allow_unused=True)
        with torch.no_grad():
            found = torch.zeros(len(logits), self.owners[0].shape[1])
            for here, gone, slope, owners in zip(leaves, self._recorder.inside(*missing), slopes, self.owners,
                                                 strict=True):
                if slope is not None:
                    found += ((here - gone) * slope) @ owners
            return found


def input_columns(embedding: FusedEmbedding, spec: FeatureSpec) -> tuple[list[str], list[str]]:
    """The field of every input column of the request and of the candidate."""
    return input_fields(embedding, spec, "request"), input_fields(embedding, spec, "candidate")


def _owners(embedding: FusedEmbedding, spec: FeatureSpec, side: BlockName, fields: Sequence[str]) -> Tensor:
    """[columns of the block, F]: 1 where the column is the field's, or of a cross or pair rate that it is part of."""
    found = torch.zeros(embedding.request.width if side == "request" else embedding.candidate.width, len(fields))
    places = {name: place for place, name in enumerate(fields)}
    for column, name in enumerate(input_fields(embedding, spec, side)):
        for part in spec.by_name[name].parts or (name,):
            owner = part if part in places else spec.slot(part).field
            found[column, places[owner]] = 1.0
    return found


def _interest_owners(served: SplitDin, fields: Sequence[str]) -> Tensor:
    """[columns of the interests, F]: an interest is the history's and its target's."""
    rows = [[float(name in pair) for name in fields] for pair in served.interest_fields]
    return torch.tensor(rows).reshape(len(rows), len(fields)).repeat_interleave(served.dim, dim=0)
