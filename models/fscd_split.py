"""How a trained FSCD network scores: its first layer as a sum of three parts, and only what the kept fields need.

    h = W_user x_user  +  (W_item x_item + b)  +  W_pair x_pair        then the rest of the perceptron
        once a request    once an item: a table   once a candidate

The parts add up to what the network computes; dropped fields are in none of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.feature_spec import BLOCK_SIDES, IdSlot
from models.batches import Block
from models.embedding import BlockReader, FusedEmbedding
from models.factorised_cross import FactorisedCrosses
from models.fscd import Fscd, input_fields

ITEM_ROWS = 65_536


class _Part:
    """One part of the first layer: [B, columns of its fields] through its columns of the weight."""

    def __init__(
        self, embedding: FusedEmbedding, slots: Sequence[IdSlot], dense: Sequence[int], weight: Tensor,
        products: FactorisedCrosses | None = None,
    ) -> None:
        self.embedding, self.weight, self.products = embedding, weight.contiguous(), products
        self.dense = torch.tensor(list(dense), dtype=torch.int64)
        self.reader = BlockReader(slots, 0, embedding.starts, embedding.dim)

    @property
    def empty(self) -> bool:
        return not self.weight.shape[1]

    def __call__(self, block: Block, shared_ids: Tensor | None = None) -> Tensor:
        """[B, H]."""
        further = [self.products(shared_ids, block.ids)] if self.products and shared_ids is not None else []
        rows = self.reader.rows(block.ids)
        vectors = F.embedding(rows, self.embedding.weight)
        joined = self.reader.join(rows, vectors, *further, block.dense.index_select(1, self.dense))
        return F.linear(joined, self.weight)


class FscdSplit:
    """`pair_spec` is the spec as the server lays it out: all user, context and item fields, and the kept crosses alone.

    Its own block holds item inputs first, then those of pairs of requester and item.
    """

    def __init__(self, network: Fscd, names: Sequence[str]) -> None:
        spec, kept = network.spec, set(names)
        self.network = network
        self.kept = tuple(name for name in network.fields if name in kept)
        dropped = {field.name for field in spec.of_side("cross")} - kept
        self.pair_spec = spec.model_copy(
            update={"fields": tuple(field for field in spec.fields if field.name not in dropped)})
        self.rest: nn.Module = network.mlp.rest
        first = network.mlp.first
        self.bias = first.bias
        user = {field.name for field in spec.of_side(*BLOCK_SIDES["shared"])}
        pair = {field.name for field in spec.of_side("cross")}
        self.user = self._part(network, "shared", kept & user, first.shared)
        self.item = self._part(network, "own", kept - user - pair, first.own)
        self.pair = self._part(network, "own", kept & pair, first.own)

    def _part(self, network: Fscd, block: str, names: set[str], weight: Tensor) -> _Part:
        spec = self.pair_spec
        columns = [i for i, name in enumerate(input_fields(network.embedding, network.spec, block))  # type: ignore[arg-type]
                   if name in names]
        slots = [slot for slot in spec.block_ids(block) if slot.field in names]  # type: ignore[arg-type]
        dense = [slot.start for slot in spec.block_dense(block) if slot.field in names]  # type: ignore[arg-type]
        products = _products(network, names)
        return _Part(network.embedding, slots, dense, weight[:, columns].detach(), products)

    def user_part(self, shared: Block) -> Tensor:
        """[1, H]."""
        return self.user(shared)

    def item_part(self, own: Block) -> Tensor:
        """[B, H] from an own block whose first columns are the item's."""
        return self.item(own) + self.bias

    @torch.inference_mode()
    def item_table(self, ids: Tensor, dense: Tensor) -> Tensor:
        """[I, H] of all items."""
        parts = [self.item_part(Block(i, d)) for i, d in zip(ids.split(ITEM_ROWS), dense.split(ITEM_ROWS), strict=True)]
        return torch.cat(parts)

    def logits(self, user: Tensor, item: Tensor, shared: Block, own: Block | None) -> Tensor:
        """user [1, H], item [B, H] -> [B]; `own` (in the layout of `pair_spec`) is needed where a cross is kept."""
        hidden = item + user
        if own is not None and not self.pair.empty:
            hidden = hidden + self.pair(own, shared.ids)
        return self.rest(hidden).squeeze(1)


def _products(network: Fscd, names: set[str]) -> FactorisedCrosses | None:
    """The kept products alone. They read ids of user, context and item fields, which lie alike in both layouts."""
    products = network.embedding.products
    wanted = [field.name for field in network.spec.products()]
    kept = [number for number, name in enumerate(wanted) if name in names]
    return products.subset(kept) if products is not None and kept else None


