"""How a trained FSCD network scores: its first layer as a sum of parts, and only what the kept fields need.

    h = W_user x_user  +  (W_item x_item + b)  +  W_cross x_cross      then the rest of the MLP
        once a request    once an item: a table   once a candidate

The parts add up to what the network computes; a dropped field is a constant, and so a part of b.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.features.feature_spec import BLOCK_SIDES, FeatureField, FeatureSpec, IdSlot
from models.examples.batches import FeatureBlock
from models.layers.embedding import BlockReader, FusedEmbedding
from models.layers.pair_rate_features import PairRateFeatures
from models.layers.product_cross import FactorisedCrosses
from models.preranking.fscd import Fscd, input_fields

ITEM_ROWS = 65_536


class LayerPart:
    """One part of the first layer: [B, columns of its fields] through its columns of the weight."""

    def __init__(
        self, embedding: FusedEmbedding, slots: Sequence[IdSlot], dense: Sequence[int], weight: Tensor,
        products: FactorisedCrosses | None = None, pair_rates: PairRateFeatures | None = None,
    ) -> None:
        self.embedding, self.weight = embedding, weight.contiguous()
        self.products, self.pair_rates = products, pair_rates
        self.dense = torch.tensor(list(dense), dtype=torch.int64)
        self.reader = BlockReader(slots, 0, embedding.starts, embedding.dim)

    def __call__(self, block: FeatureBlock, request_ids: Tensor | None = None) -> Tensor:
        """[B, H]."""
        products, pair_rates = ([made(request_ids, block.ids)] if made is not None and request_ids is not None else []
                                for made in (self.products, self.pair_rates))
        rows = self.reader.rows(block.ids)
        vectors = F.embedding(rows, self.embedding.weight)
        joined = self.reader.join(rows, vectors, *products, block.dense.index_select(1, self.dense), *pair_rates)
        return F.linear(joined, self.weight)


class FscdSplit:
    """`crosses` are the kept ones, pair rates among them; `spec` is the network's without any cross."""

    def __init__(self, network: Fscd, names: Collection[str]) -> None:
        kept = set(names)
        self.network = network
        self.kept = tuple(name for name in network.fields if name in kept)
        self.crosses = tuple(field.name for field in network.spec.of_side("cross") if field.name in kept)
        self.spec = spec_with_crosses(network.spec, ())
        self.rest: nn.Module = network.mlp.rest
        self.bias = _bias(network)
        request = {field.name for field in network.spec.of_side(*BLOCK_SIDES["request"])}
        self._user = _part(network, self.spec, "request", kept & request)
        self._item = _part(network, self.spec, "candidate", kept - request)

    def user_part(self, request: FeatureBlock) -> Tensor:
        """[1, H]."""
        return self._user(request)

    def item_part(self, candidate: FeatureBlock) -> Tensor:
        """[B, H] from a candidate block whose first columns are the item's."""
        return self._item(candidate) + self.bias

    @torch.inference_mode()
    def item_table(self, ids: Tensor, dense: Tensor) -> Tensor:
        """[I, H] of all items."""
        parts = [self.item_part(FeatureBlock(*rows))
                 for rows in zip(ids.split(ITEM_ROWS), dense.split(ITEM_ROWS), strict=True)]
        return torch.cat(parts)

    def cross_part(self, names: Collection[str]) -> tuple[FeatureSpec, LayerPart]:
        """The part of these crosses, [1 or B, ..] request and [B, ..] candidate ids -> [B, H], and the spec of the
        candidate block that it reads: item inputs first, then these crosses."""
        spec = spec_with_crosses(self.network.spec, names)
        return spec, _part(self.network, spec, "candidate", set(names))

    def crosses_part(self) -> LayerPart | None:
        """That of all kept crosses, whose candidate block has every cross of the network's spec; None without any."""
        return _part(self.network, self.network.spec, "candidate", set(self.crosses)) if self.crosses else None

    def logits(self, hidden: Tensor) -> Tensor:
        """Sum of the parts [B, H] -> [B]."""
        return self.rest(hidden).squeeze(1)


def spec_with_crosses(spec: FeatureSpec, names: Collection[str]) -> FeatureSpec:
    """All user, context and item fields, and of the crosses these alone."""
    fields = tuple(field for field in spec.fields if field.side != "cross" or field.name in names)
    return spec.model_copy(update={"fields": fields})


def _part(network: Fscd, spec: FeatureSpec, block: str, names: set[str]) -> LayerPart:
    first = network.mlp.first
    columns = [i for i, name in enumerate(input_fields(network.embedding, network.spec, block))  # type: ignore[arg-type]
               if name in names and name in spec.by_name]
    slots = [slot for slot in spec.block_ids(block) if slot.field in names]  # type: ignore[arg-type]
    dense = [slot.start for slot in spec.block_dense(block) if slot.field in names]  # type: ignore[arg-type]
    weight = (first.request if block == "request" else first.candidate)[:, columns].detach()
    return LayerPart(network.embedding, slots, dense, weight, _products(network, spec, names),
                _pair_rates(network, spec, names))


@torch.no_grad()
def _bias(network: Fscd) -> Tensor:
    """[H]: b and what the constants of the dropped fields add."""
    first, bias = network.mlp.first, network.mlp.first.bias.clone()
    for mean, columns, weight in ((network.request_mean, network.request_columns, first.request),
                                  (network.candidate_mean, network.candidate_columns, first.candidate)):
        bias += F.linear(mean * (1.0 - network.kept[columns]), weight)
    return bias


def _products(network: Fscd, spec: FeatureSpec, names: set[str]) -> FactorisedCrosses | None:
    """The kept products alone. They read ids of user, context and item fields, which lie alike in both layouts."""
    products, kept = network.embedding.products, _numbers(network.spec.products(), spec, names)
    return products.subset(kept) if products is not None and kept else None


def _pair_rates(network: Fscd, spec: FeatureSpec, names: set[str]) -> PairRateFeatures | None:
    """The kept ones alone; of their ids the same holds."""
    pair_rates, kept = network.embedding.pair_rates, _numbers(network.spec.pair_rates(), spec, names)
    return pair_rates.subset(kept) if pair_rates is not None and kept else None


def _numbers(fields: Sequence[FeatureField], spec: FeatureSpec, names: set[str]) -> list[int]:
    return [n for n, field in enumerate(fields) if field.name in names and field.name in spec.by_name]
