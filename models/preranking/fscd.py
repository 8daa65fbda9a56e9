"""The pre-ranker that pays for its features: embeddings of the fields through an MLP, each field behind a mask.

    Ma et al., "Towards a Better Tradeoff between Effectiveness and Efficiency in Pre-Ranking", arXiv 2105.07706

    x_j     = [vectors of the field's slots; its dense number]
    input_j = m_j x_j + (1 - m_j) mean(x_j)                                one mask m_j per field
    logit   = MLP([request inputs; candidate inputs])

While fields are chosen m is the gate z, one per candidate; afterwards it is 1 for a kept field, 0 for a dropped one, so
that a dropped field is a constant input and shapes, weights and checkpoints stay as they are. The constant is the
input's running mean, not 0: a gate that closes on 0 also moves the mean of its layer, and a field that says nothing
stays open for that alone.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

from contracts.config.section import Side
from contracts.features.feature_spec import BLOCK_SIDES, BlockName, FeatureSpec
from models.examples.batches import FeatureBlock
from models.layers import number_encoding
from models.layers.embedding import FusedEmbedding
from models.layers.mlp import Mlp


def input_fields(embedding: FusedEmbedding, spec: FeatureSpec, block: BlockName) -> list[str]:
    """The field that each input column of the block belongs to, in the order of `BlockReader.join`."""
    sides: tuple[Side, ...] = BLOCK_SIDES[block]
    reader = embedding.request if block == "request" else embedding.candidate
    names = [slot.field for slot in reader.slots for _ in range(embedding.dim)]
    if block == "candidate" and embedding.products:
        each = embedding.products.width // len(spec.products())
        names += [field.name for field in spec.products() for _ in range(each)]
    dense = spec.dense_slots(*sides)
    encoding = embedding.request_encoding if block == "request" else embedding.candidate_encoding
    names += [slot.field for slot in (*dense, *number_encoding.sources(encoding, dense))]
    if block == "candidate" and embedding.pair_rates:
        names += [field.name for field in spec.pair_rates() for _ in range(embedding.pair_rates.channels)]
    return names


MEAN_RATE = 0.05  # of the running means, per batch


class Fscd(nn.Module):
    """`fields` are the fields of the spec in its order; masks [.., F] follow it. Statistics of pairs are empty until
    models/pair_rates/weights.py fills them.
    """

    kept: Tensor
    request_columns: Tensor
    candidate_columns: Tensor
    request_spread: Tensor
    candidate_spread: Tensor
    request_mean: Tensor
    candidate_mean: Tensor

    def __init__(self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.spec = spec
        self.fields = tuple(field.name for field in spec.fields)
        self.embedding = FusedEmbedding(spec, dim)
        self.mlp = Mlp(self.embedding.request.width, self.embedding.candidate.width, hidden)
        self.register_buffer("kept", torch.ones(len(self.fields)))
        for name in ("request", "candidate"):
            columns = [self.fields.index(field) for field in input_fields(self.embedding, spec, name)]  # type: ignore[arg-type]
            self.register_buffer(f"{name}_columns", torch.tensor(columns, dtype=torch.int64), persistent=False)
            spread = nn.functional.one_hot(getattr(self, f"{name}_columns"), len(self.fields)).float().T
            self.register_buffer(f"{name}_spread", spread.contiguous(), persistent=False)
            self.register_buffer(f"{name}_mean", torch.zeros(len(columns)))

    def keep(self, names: Collection[str]) -> None:
        """Drops all other fields: their inputs are constants from now on."""
        self.kept.copy_(torch.tensor([float(name in names) for name in self.fields]))

    @property
    def kept_fields(self) -> list[str]:
        """In the order of the spec."""
        return [name for name, kept in zip(self.fields, self.kept.tolist(), strict=True) if kept]

    def inputs(
        self, request: FeatureBlock, candidate: FeatureBlock, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """[R, request width] and [B, candidate width], masked; B a multiple of R: B / R candidates each. With `mask`
        [B, F] the request inputs, too, are of B rows."""
        left, right = self._unmasked(request, candidate)
        if self.training:
            self._follow(left.detach(), right.detach())
        if mask is None:
            mask = self.kept[None]
        else:
            mask = mask * self.kept
            left = left.repeat_interleave(len(right) // len(left), 0)
        return (torch.lerp(self.request_mean, left, mask @ self.request_spread),
                torch.lerp(self.candidate_mean, right, mask @ self.candidate_spread))

    @torch.no_grad()
    def _follow(self, left: Tensor, right: Tensor) -> None:
        """The means of dropped fields stay as they were."""
        rates = MEAN_RATE * self.kept
        self.request_mean = torch.lerp(self.request_mean, left.mean(dim=0), rates[self.request_columns])
        self.candidate_mean = torch.lerp(self.candidate_mean, right.mean(dim=0), rates[self.candidate_columns])

    def _unmasked(self, request: FeatureBlock, candidate: FeatureBlock) -> tuple[Tensor, Tensor]:
        embedding = self.embedding
        each = FeatureBlock(request.ids.repeat_interleave(len(candidate.ids) // len(request.ids), 0), request.dense) \
            if embedding.products or embedding.pair_rates else request
        left, right = embedding.read(
            (embedding.request, embedding.request.rows(request.ids), [request.dense]),
            (embedding.candidate, embedding.candidate.rows(candidate.ids), embedding.of_candidate(each, candidate)))
        return left, right

    def forward(self, request: FeatureBlock, candidate: FeatureBlock, mask: Tensor | None = None) -> Tensor:
        """request of R rows, candidate of B rows, B a multiple of R (request r has rows r B/R and on) -> logits [B]."""
        left, right = self.inputs(request, candidate, mask)
        first = self.mlp.first
        requests = nn.functional.linear(left, first.request)
        candidates = nn.functional.linear(right, first.candidate, first.bias)
        hidden = candidates.view(len(requests), -1, candidates.shape[1]) + requests[:, None]
        return self.mlp.rest(hidden.flatten(0, 1)).squeeze(1)


