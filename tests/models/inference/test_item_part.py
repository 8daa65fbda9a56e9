"""The table of what items add to a first layer: a row per item, by the network's own weights."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from contracts.config.section import Numbers
from contracts.config.training import Train
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureField, FeatureSpec, PairModel
from models.examples.batches import Batch, FeatureBlock
from models.inference import item_part, split_ranker
from models.inference.split_din import SplitDin
from models.inference.split_ranker import SplitDnn
from models.networks import registry
from models.networks.dnn import Dnn
from models.pair_rates import weights as pair_weights

pytestmark = pytest.mark.usefixtures("either")


def items(spec: FeatureSpec, block: FeatureBlock) -> Encoded:
    return Encoded(block.ids[:, : spec.id_width("item")].numpy(), block.dense.numpy())


@torch.inference_mode()
def test_with_the_crosses_it_is_the_first_layer(spec: FeatureSpec, batch: Batch) -> None:
    """An item whose crosses are padding adds what the network's first layer makes of it, without the bias."""
    made = Dnn(spec, 4, (8, 6), 0.0).eval()
    ids = batch.candidate.ids.clone()
    ids[:, spec.id_width("item") :] = 0
    _, right = made.embedding(batch.request, FeatureBlock(ids, batch.candidate.dense))
    found = item_part.table(made, items(spec, batch.candidate))
    assert found is not None
    np.testing.assert_allclose(found, (right @ made.mlp.first.candidate.T).numpy(), atol=1e-6)


def test_items_are_taken_in_blocks(spec: FeatureSpec, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dnn(spec, 4, (8,), 0.0).eval().requires_grad_(False)
    whole = item_part.table(made, items(spec, batch.candidate))
    monkeypatch.setattr(item_part, "BLOCK", 7)
    parts = item_part.table(made, items(spec, batch.candidate))
    assert whole is not None
    assert parts is not None
    np.testing.assert_allclose(whole, parts, atol=1e-6)


def test_a_part_that_is_kept_has_the_table_s_rows_of_few_items(spec: FeatureSpec, batch: Batch) -> None:
    made = Dnn(spec, 4, (8,), 0.0).eval().requires_grad_(False)
    given, part = items(spec, batch.candidate), item_part.item_part(made)
    whole = item_part.table(made, given)
    assert whole is not None
    assert part is not None
    for rows in (slice(2), slice(3, 8)):
        np.testing.assert_allclose(part(Encoded(given.ids[rows], given.dense[rows])), whole[rows], atol=1e-6)


def test_a_layer_that_reads_crosses_has_none(spec: FeatureSpec, batch: Batch) -> None:
    for structure in ("parallel", "stacked"):
        made = registry.build("dcn_v2", spec, Train(embedding_dim=4, cross_structure=structure)).requires_grad_(False)
        assert (item_part.table(made, items(spec, batch.candidate)) is None) == (structure == "stacked")


@pytest.mark.parametrize("name", ["logistic_regression", "popularity"])
def test_networks_without_such_a_layer_have_none(spec: FeatureSpec, batch: Batch, name: str) -> None:
    made = registry.build(name, spec, Train(embedding_dim=4))
    assert item_part.table(made, items(spec, batch.candidate)) is None


@pytest.mark.parametrize("numbers", get_args(Numbers))
@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din"])
def test_what_changed_of_items_is_added_to_their_part(
    spec: FeatureSpec, batch: Batch, name: str, numbers: Numbers
) -> None:
    """The table of other inputs is the table of these and what they differ by."""
    train = Train(embedding_dim=4, hidden=[8], numbers=numbers)
    made = registry.build(name, spec, train).eval().requires_grad_(False)
    split = split_ranker.of(made, spec.id_width("item"))
    assert isinstance(split, SplitDnn | SplitDin)
    before = items(spec, batch.candidate)
    ids = np.array([slot.start for slot in spec.id_slots("item") if slot.width == 1])
    dense = np.arange(before.dense.shape[1])
    now = Encoded(before.ids.copy(), before.dense * 2 + 1)
    now.ids[:, ids] = before.ids[::-1, ids]
    found, whole = item_part.table(made, before), item_part.table(made, now)
    assert found is not None
    assert whole is not None
    changed = item_part.ChangedColumns(split.inputs, split.mlp, ids, dense)
    same = found.copy()
    changed.add(same, before, before)
    np.testing.assert_array_equal(same, found)
    changed.add(found, before, now)
    np.testing.assert_allclose(found, whole, atol=1e-5)


@pytest.mark.parametrize("numbers", get_args(Numbers))
def test_numbers_lie_before_pair_rates_and_behind_products(pair_spec: FeatureSpec, numbers: Numbers) -> None:
    """Of two, the second alone is moved."""
    views = FeatureField(name="views", kind="numeric", side="item", edges={3: (0.5, 1.5)}, mean=1.0, std=0.5)
    product = FeatureField(
        name="city_brand", kind="cross", side="cross", parts=("city", "brand"), representation="product")
    spec = pair_spec.model_copy(update={"fields": (*pair_spec.fields, views, product)})
    spec = pair_weights.with_pair_rates(spec, [("city", "brand")], PairModel(head="dot", dim=5))
    made = Dnn(spec, 4, (8,), 0.0, numbers=numbers).eval().requires_grad_(False)
    split = split_ranker.of(made, spec.id_width("item"))
    assert isinstance(split, SplitDnn)
    assert made.embedding.products is not None
    assert made.embedding.pair_rates is not None
    drawn = np.random.default_rng(0).normal(size=(30, len(spec.dense_slots("item")))).astype(np.float32)
    before = Encoded(np.zeros((30, spec.id_width("item")), dtype=np.int32), drawn)
    last = [slot.start for slot in spec.dense_slots("item") if slot.field == "views"]
    now = Encoded(before.ids, drawn.copy())
    now.dense[:, last] += 1
    found, whole = item_part.table(made, before), item_part.table(made, now)
    assert found is not None
    assert whole is not None
    item_part.ChangedColumns(split.inputs, split.mlp, np.array([], dtype=np.int64), np.array(last)).add(
        found, before, now)
    np.testing.assert_allclose(found, whole, atol=1e-5)
