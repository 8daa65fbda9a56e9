"""Two towers: user and item vectors whose inner product ranks the catalogue: retrieval is a nearest-neighbour search.

    u = normalise(MLP(user and context)), v = normalise(MLP(item)), logit = u . v / temperature

The item tower reads the item side alone (no crosses), hence an item has one vector for all users.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import Block, BlockReader, FusedEmbedding, item_slot
from models.layers.mlp import Mlp


class TwoTower(nn.Module):
    """`item_log_frequency` [items] is log Q of Yi et al. (RecSys 2019): how often an item is drawn into a batch."""

    item_log_frequency: Tensor

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], tower_dim: int, dropout: float, temperature: float
    ) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim, candidate_sides=("item",))
        self.user = Mlp(self.embedding.request.width, 0, hidden, tower_dim, dropout)
        self.item = Mlp(0, self.embedding.candidate.width, hidden, tower_dim, dropout)
        self.temperature = temperature
        self.slot = item_slot(spec)
        self.item_id_columns, self.item_dense_columns = spec.id_width("item"), len(spec.dense_slots("item"))
        self.register_buffer("item_log_frequency", torch.zeros(self.slot.size if self.slot else 1))

    def prepare(self, examples: ExampleSet) -> None:
        """Takes log Q from the training window, each id counted at least once."""
        if self.slot:
            counts = torch.zeros(self.slot.size, dtype=torch.float64)
            for (ids,) in examples.parts(self.slot.name):
                counts += torch.bincount(torch.from_numpy(ids.copy()), minlength=self.slot.size)
            self.item_log_frequency.copy_((counts.clamp(min=1.0) / counts.sum()).log())

    def item_ids(self, candidate: FeatureBlock) -> Tensor:
        """[B] the id that names the item; zeros where the items have no id."""
        if self.slot is None:
            return candidate.ids.new_zeros(len(candidate.dense)).long()
        return candidate.ids[:, self.slot.start].long()

    def user_vector(self, request: FeatureBlock) -> Tensor:
        """request [B, ...] -> [B, tower_dim] of length 1."""
        return self._user(self._inputs(self.embedding.request, request))

    def item_vector(self, candidate: FeatureBlock) -> Tensor:
        """Item-side columns [N, ...] (further columns of a block are ignored) -> [N, tower_dim] of length 1."""
        return self._item(self._inputs(self.embedding.candidate, self._item_side(candidate)))

    def both(self, request: FeatureBlock, candidate: FeatureBlock) -> tuple[Tensor, Tensor]:
        """User vectors [B, tower_dim] and item vectors [N, tower_dim], read from the table in one go: torch would take
        long to add up two sparse gradients."""
        embedding = self.embedding
        left, right = embedding.read(_block(embedding.request, request),
                                     _block(embedding.candidate, self._item_side(candidate)))
        return self._user(left), self._item(right)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        users, items = self.both(request, candidate)
        return (users * items).sum(dim=1) / self.temperature

    def _user(self, inputs: Tensor) -> Tensor:
        return F.normalize(self.user(inputs, inputs[:, :0]).float(), dim=1)

    def _item(self, inputs: Tensor) -> Tensor:
        return F.normalize(self.item(inputs[:, :0], inputs).float(), dim=1)

    def _item_side(self, candidate: FeatureBlock) -> FeatureBlock:
        return FeatureBlock(candidate.ids[:, : self.item_id_columns], candidate.dense[:, : self.item_dense_columns])

    def _inputs(self, reader: BlockReader, block: FeatureBlock) -> Tensor:
        return self.embedding.read(_block(reader, block))[0]


def _block(reader: BlockReader, block: FeatureBlock) -> Block:
    return reader, reader.rows(block.ids), [block.dense]
