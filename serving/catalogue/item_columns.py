"""What changes say of items, as columns that the bundle keeps of every item: inputs, vectors, parts of first layers.

A field that a change leaves out is as in the bundle, and unknown for an item that the bundle lacks, but for the one
that holds the items' own keys. Unknown is a value that no vocabulary knows, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from contracts.errors import DataError
from contracts.features.encoding import Encoded, number, scale
from contracts.features.feature_spec import FeatureField
from models.examples.batches import FeatureBlock
from models.inference.item_part import item_part
from serving.bundle.feature_store import OwnKeys
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import ContextValue, as_column

Described = Mapping[str, ContextValue]


class ItemColumns(NamedTuple):
    """Of n items: `inputs` [n, ...], `vectors` [n, d], and what two first layers add up, [n, H], where the bundle keeps
    them."""

    inputs: Encoded
    vectors: np.ndarray
    rank_part: np.ndarray | None
    prerank_part: np.ndarray | None


class ItemEncoder:
    """By the encoder and the networks of `bundle`, as it was loaded."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle, spec = bundle, bundle.spec
        self._fields = spec.of_side("item")
        self._id_columns = {
            field.name: [column for slot in spec.id_slots("item") if slot.field == field.name
                         for column in range(slot.start, slot.start + slot.width)] for field in self._fields}
        self._dense_columns = {slot.field: slot.start for slot in spec.dense_slots("item")}
        self._rank_part = None if bundle.rank_table is None else item_part(bundle.ranker)
        self._named = OwnKeys(bundle.items, spec, bundle.encoder)

    def with_key(self, key: str, described: Described) -> Described:
        """What a change says of an item that the bundle lacks, and its key where a field holds that."""
        return self._named(key, described)

    @torch.inference_mode()
    def columns(self, described: Sequence[Described], rows: np.ndarray) -> ItemColumns:
        """`rows` [n] are those of the bundle, -1 for items that it lacks. Raises DataError where a value cannot be
        encoded, with the field's name."""
        bundle, inputs = self._bundle, self._inputs(described, rows)
        block = FeatureBlock(torch.from_numpy(inputs.ids), torch.from_numpy(inputs.dense))
        ranked = None if self._rank_part is None else self._rank_part(inputs)
        pre_ranked = None
        if bundle.item_part is not None and bundle.fscd is not None:
            pre_ranked = bundle.fscd.item_table(*block).numpy()
        return ItemColumns(inputs, bundle.towers.item_vector(block).numpy(), ranked, pre_ranked)

    def _inputs(self, described: Sequence[Described], rows: np.ndarray) -> Encoded:
        """The bundle's rows, the last one of items that it lacks, with what is described in their places."""
        inputs = Encoded(self._bundle.items.ids[rows], self._bundle.items.dense[rows])
        for field in self._fields:
            places = [place for place, one in enumerate(described) if field.name in one]
            if places:
                values = [as_column(field, described[place][field.name]) for place in places]
                self._put(field, np.array(places), values, inputs)
        return inputs

    def _put(self, field: FeatureField, places: np.ndarray, values: Sequence[object], inputs: Encoded) -> None:
        """Of one field. Raises DataError."""
        try:
            blocks = self._bundle.encoder.field_ids(field, values)
            if blocks:
                inputs.ids[places[:, None], self._id_columns[field.name]] = np.concatenate(blocks, axis=1)
            if field.dense:
                inputs.dense[places, self._dense_columns[field.name]] = scale(number(values), field)
        except (DataError, TypeError, ValueError) as error:
            raise DataError(f"values[{field.name}]: {error}") from None
