from __future__ import annotations

import pytest
import torch

from contracts.feature_spec import FeatureField, FeatureSpec
from models.batches import Batch, Block
from models.fscd import Fscd
from models.fscd_split import FscdSplit


@pytest.fixture
def network(spec: FeatureSpec) -> Fscd:
    return Fscd(spec, 4, (16, 8)).eval()


def test_a_dropped_field_says_nothing(network: Fscd, batch: Batch) -> None:
    network.keep([name for name in network.fields if name != "item_group"])
    before = network(batch.shared, batch.own)
    slot = next(slot for slot in network.spec.block_ids("own") if slot.field == "item_group")
    ids = batch.own.ids.clone()
    ids[:, slot.start] = 2
    assert torch.equal(network(batch.shared, Block(ids, batch.own.dense)), before)
    network.keep(network.fields)
    assert not torch.equal(network(batch.shared, Block(ids, batch.own.dense)), network(batch.shared, batch.own))


def test_a_mask_of_zeros_is_dropping(network: Fscd, batch: Batch) -> None:
    mask = torch.ones(len(batch.label), len(network.fields))
    mask[:, network.fields.index("price")] = 0.0
    masked = network(batch.shared, batch.own, mask)
    network.keep([name for name in network.fields if name != "price"])
    assert torch.allclose(masked, network(batch.shared, batch.own), atol=1e-6)


def test_a_dropped_field_is_its_mean_and_the_mean_stays(network: Fscd, batch: Batch) -> None:
    network.train()
    for _ in range(200):
        network.inputs(batch.shared, batch.own)
    network.keep([name for name in network.fields if name != "price"])
    column = network.own_columns == network.fields.index("price")
    found = network.inputs(batch.shared, batch.own)[1][:, column]
    assert torch.allclose(found[:, -1:], batch.own.dense.mean(dim=0).expand(len(found), 1), atol=1e-3)
    network.inputs(batch.shared, Block(batch.own.ids, batch.own.dense + 5.0))
    assert torch.equal(network.inputs(batch.shared, batch.own)[1][:, column], found)


def test_a_request_stands_for_all_its_candidates(network: Fscd, batch: Batch) -> None:
    requests = Block(batch.shared.ids[::8], batch.shared.dense[::8])
    repeated = Block(*(part.repeat_interleave(8, 0) for part in requests))
    assert torch.allclose(network(requests, batch.own), network(repeated, batch.own), atol=1e-6)


@pytest.mark.parametrize("dropped", [(), ("both",), ("history", "tags"), ("user", "user_group", "history", "hour"),
                                     ("item", "item_group", "tags", "price"), ("price", "both", "user")])
def test_the_split_adds_up_to_the_network(network: Fscd, batch: Batch, dropped: tuple[str, ...]) -> None:
    network.keep([name for name in network.fields if name not in dropped])
    check_split(network, batch, dropped)


def test_the_split_of_a_product_cross(spec: FeatureSpec, batch: Batch) -> None:
    crossed = [FeatureField(name=name, kind="cross", side="cross", parts=parts, representation="product")
               for name, parts in (("first", ("user_group", "item_group")), ("second", ("user", "price#3")))]
    whole = spec.model_copy(update={"fields": (*spec.fields, *crossed)})
    for dropped in ((), ("first",), ("second", "user"), ("first", "second", "both")):
        network = Fscd(whole, 4, (16, 8)).eval()
        network.keep([name for name in network.fields if name not in dropped])
        check_split(network, batch, dropped)


def check_split(network: Fscd, batch: Batch, dropped: tuple[str, ...]) -> None:
    split = FscdSplit(network, network.kept_fields)
    first = Block(batch.shared.ids[:1], batch.shared.dense[:1])
    items, crosses = network.spec.id_width("item"), [slot.field for slot in network.spec.id_slots("cross")]
    with torch.inference_mode():
        hidden = split.item_table(batch.own.ids, batch.own.dense) + split.user_part(first)
        for names in (split.crosses[:1], split.crosses[1:]):
            _, part = split.cross_part(names)
            columns = [*range(items), *(items + crosses.index(name) for name in names if name in crosses)]
            hidden = hidden + part(Block(batch.own.ids[:, columns], batch.own.dense), first.ids)
        assert torch.allclose(split.logits(hidden), network(first, batch.own), atol=1e-5)
