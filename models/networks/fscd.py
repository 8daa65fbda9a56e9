"""The pre-ranker that pays for its features: embeddings of the fields through a perceptron, each field behind a mask.

    Ma et al., "Towards a Better Tradeoff between Effectiveness and Efficiency in Pre-Ranking", arXiv 2105.07706

    x_j     = [vectors of the field's slots; its dense number]
    input_j = m_j x_j + (1 - m_j) mean(x_j)                                one mask m_j per field
    logit   = perceptron([shared inputs; own inputs])

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
from contracts.features.feature_spec import BLOCK_SIDES, FeatureSpec
from contracts.features.feature_spec import Block as BlockName
from models.examples.batches import Block
from models.layers.embedding import FusedEmbedding
from models.layers.mlp import Mlp


def input_fields(embedding: FusedEmbedding, spec: FeatureSpec, block: BlockName) -> list[str]:
    """The field that each input column of the block belongs to, in the order of `BlockReader.join`."""
    sides: tuple[Side, ...] = BLOCK_SIDES[block]
    reader = embedding.shared if block == "shared" else embedding.own
    names = [slot.field for slot in reader.slots for _ in range(embedding.dim)]
    if block == "own" and embedding.products:
        each = embedding.products.width // len(spec.products())
        names += [field.name for field in spec.products() for _ in range(each)]
    names += [slot.field for slot in spec.dense_slots(*sides)]
    if block == "own" and embedding.statistics:
        names += [field.name for field in spec.statistics() for _ in range(embedding.statistics.channels)]
    return names


MEAN_RATE = 0.05  # of the running means, per batch


class Fscd(nn.Module):
    """`fields` are the fields of the spec in its order; masks [.., F] follow it. Statistics of pairs are empty until
    models/pair_rates/weights.py fills them.
    """

    kept: Tensor
    shared_columns: Tensor
    own_columns: Tensor
    shared_mean: Tensor
    own_mean: Tensor

    def __init__(self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.spec = spec
        self.fields = tuple(field.name for field in spec.fields)
        self.embedding = FusedEmbedding(spec, dim)
        self.mlp = Mlp(self.embedding.shared.width, self.embedding.own.width, hidden)
        self.register_buffer("kept", torch.ones(len(self.fields)))
        for name in ("shared", "own"):
            columns = [self.fields.index(field) for field in input_fields(self.embedding, spec, name)]  # type: ignore[arg-type]
            self.register_buffer(f"{name}_columns", torch.tensor(columns, dtype=torch.int64), persistent=False)
            self.register_buffer(f"{name}_mean", torch.zeros(len(columns)))

    def keep(self, names: Collection[str]) -> None:
        """Drops all other fields: their inputs are constants from now on."""
        self.kept.copy_(torch.tensor([float(name in names) for name in self.fields]))

    @property
    def kept_fields(self) -> list[str]:
        return [name for name, kept in zip(self.fields, self.kept.tolist(), strict=True) if kept]

    def inputs(self, shared: Block, own: Block, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """[R, shared width] and [B, own width], masked; B a multiple of R: B / R candidates each. With `mask` [B, F]
        the shared inputs, too, are of B rows."""
        left, right = self._unmasked(shared, own)
        if self.training:
            self._follow(left.detach(), right.detach())
        if mask is None:
            mask = self.kept[None]
        else:
            mask = mask * self.kept
            left = left.repeat_interleave(len(right) // len(left), 0)
        return (torch.lerp(self.shared_mean, left, mask.index_select(1, self.shared_columns)),
                torch.lerp(self.own_mean, right, mask.index_select(1, self.own_columns)))

    @torch.no_grad()
    def _follow(self, left: Tensor, right: Tensor) -> None:
        """The means of dropped fields stay as they were."""
        rates = MEAN_RATE * self.kept
        self.shared_mean = torch.lerp(self.shared_mean, left.mean(dim=0), rates[self.shared_columns])
        self.own_mean = torch.lerp(self.own_mean, right.mean(dim=0), rates[self.own_columns])

    def _unmasked(self, shared: Block, own: Block) -> tuple[Tensor, Tensor]:
        embedding = self.embedding
        shared_rows, own_rows = embedding.shared.rows(shared.ids), embedding.own.rows(own.ids)
        left, right = embedding.vectors(shared_rows, own_rows)
        each = Block(shared.ids.repeat_interleave(len(own.ids) // len(shared.ids), 0), shared.dense) \
            if embedding.products or embedding.statistics else shared
        return (embedding.shared.join(shared_rows, left, shared.dense),
                embedding.join_own(own_rows, right, each, own))

    def forward(self, shared: Block, own: Block, mask: Tensor | None = None) -> Tensor:
        """shared of R rows, own of B rows, B a multiple of R (request r owns rows r B/R and on) -> logits [B]."""
        left, right = self.inputs(shared, own, mask)
        first = self.mlp.first
        requests = nn.functional.linear(left, first.shared)
        candidates = nn.functional.linear(right, first.own, first.bias)
        hidden = candidates.view(len(requests), -1, candidates.shape[1]) + requests[:, None]
        return self.mlp.rest(hidden.flatten(0, 1)).squeeze(1)


