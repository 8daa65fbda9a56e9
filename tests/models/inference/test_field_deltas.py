"""The first layer without a field, against inputs without it; estimates against the slope along the whole change."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.inference.field_deltas import FieldDeltas
from models.inference.split_ranker import SplitDnn
from models.networks.dnn import Dnn
from models.preranking.fscd import input_fields

FIELDS = ["history", "tags", "hour", "item_group", "price", "user", "user_group", "item"]
ITEMS = 6


def rows(block: FeatureBlock, count: int, from_row: int = 0) -> Encoded:
    return Encoded(*(part[from_row : from_row + count].numpy() for part in block))


class World:
    """A DNN with random weights, a request, items, and a row of each block where nothing is known."""

    def __init__(self, spec: FeatureSpec, batch: Batch) -> None:
        torch.manual_seed(3)
        made = Dnn(spec, 4, (8, 6), 0.0).eval().requires_grad_(False)
        torch.nn.init.normal_(made.embedding.weight[1:])  # padding is zero
        self.served = SplitDnn(made, spec.id_width("item"))
        self.names = input_fields(made.embedding, spec, "request"), input_fields(made.embedding, spec, "candidate")
        self.missing = rows(batch.request, 1, ITEMS), rows(batch.candidate, 1, ITEMS)
        self.owners = np.array([[float(field == "tags" or field == "user_group") if name == "both" else
                                 float(field == name) for field in FIELDS] for name in self.names[1]])
        self.begun, self.items = self.served.begin(rows(batch.request, 1)), rows(batch.candidate, ITEMS)
        self.right = self.served.right(self.begun, self.items)
        self.gone = (self.served.inputs.request(self.missing[0])[0],
                     self.served.right(self.served.begin(self.missing[0]), self.missing[1])[0])

    @property
    def deltas(self) -> FieldDeltas:
        return FieldDeltas(self.served, FIELDS, self.names, self.owners, self.missing)

    def hidden(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return right @ self.served.mlp.candidate + self.served.mlp.request_part(left)


def every(place: int) -> tuple[np.ndarray, np.ndarray]:
    """All items, and one field."""
    return np.arange(ITEMS), np.full(ITEMS, place)


@pytest.fixture
def world(spec: FeatureSpec, batch: Batch, either: str) -> World:
    assert either
    return World(spec, batch)


def test_less_a_fields_part_it_is_the_first_layer_without_its_columns(world: World) -> None:
    found = world.deltas.of(world.begun, world.items)
    np.testing.assert_allclose(found.hidden, world.hidden(world.begun.inputs, world.right), atol=1e-5)
    for place, name in enumerate(FIELDS):
        left, right = world.begun.inputs.copy(), world.right.copy()
        for part, names, gone in zip((left, right), world.names, world.gone, strict=True):
            own = np.array(names) == name
            part[:, own] = gone[own]
        np.testing.assert_allclose(found.without(*every(place)), world.hidden(left, right), atol=1e-5, err_msg=name)


def test_to_first_order_a_cross_counts_for_each_of_its_parts(world: World) -> None:
    found = world.deltas.of(world.begun, world.items)
    logits, slopes = world.served.mlp.slopes(found.hidden)
    np.testing.assert_allclose(found.logits, logits[:, 0], atol=1e-6)
    for place, name in enumerate(FIELDS):
        own = (np.array(world.names[1]) == "both") & (name in ("tags", "user_group"))
        crossed = (world.right - world.gone[1])[:, own] @ world.served.mlp.candidate[own]
        delta = found.hidden - found.without(*every(place))
        expected = ((delta + crossed) * slopes).sum(axis=1)
        np.testing.assert_allclose(found.estimates[:, place], expected, atol=1e-5, err_msg=name)


def test_what_crosses_add_is_told_apart(world: World) -> None:
    found, own = world.deltas.of(world.begun, world.items), np.array(world.names[1]) == "both"
    assert own.any()
    np.testing.assert_allclose(found.crossed, world.right[:, own] @ world.served.mlp.candidate[own], atol=1e-5)
