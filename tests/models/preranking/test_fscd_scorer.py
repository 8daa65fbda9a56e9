from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureField, FeatureSpec, PairModel
from models.examples.batches import Batch, FeatureBlock
from models.pair_rates.weights import with_pair_rates
from models.preranking.fscd import Fscd
from models.preranking.fscd_scorer import FscdSplit


@pytest.fixture
def network(spec: FeatureSpec) -> Fscd:
    return Fscd(spec, 4, (16, 8)).eval()


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


@pytest.mark.parametrize("head", ["dot", "table"])
def test_the_split_of_pair_rates(spec: FeatureSpec, batch: Batch, head: str) -> None:
    model = PairModel(head=head, dim=3, entries=6 * (head == "table"))  # type: ignore[arg-type]
    pairs = [("user_group", "item_group"), ("user", "tags"), ("history", "item")]
    whole = with_pair_rates(spec, pairs, model)
    first, second, third = (field.name for field in whole.pair_rates())
    for dropped in ((), (first,), (second, third, "user"), ("both", first, second, third)):
        network = Fscd(whole, 4, (16, 8)).eval()
        assert network.embedding.pair_rates is not None
        for values in (*network.embedding.pair_rates.parameters(), network.embedding.pair_rates.mean):
            torch.nn.init.normal_(values)
        network.keep([name for name in network.fields if name not in dropped])
        check_split(network, batch, dropped)


def check_split(network: Fscd, batch: Batch, dropped: tuple[str, ...]) -> None:
    split = FscdSplit(network, network.kept_fields)
    first = FeatureBlock(batch.request.ids[:1], batch.request.dense[:1])
    items, crosses = network.spec.id_width("item"), [slot.field for slot in network.spec.id_slots("cross")]
    with torch.inference_mode():
        hidden = split.item_table(batch.candidate.ids, batch.candidate.dense) + split.user_part(first)
        for names in (split.crosses[:1], split.crosses[1:]):
            _, part = split.cross_part(names)
            columns = [*range(items), *(items + crosses.index(name) for name in names if name in crosses)]
            hidden = hidden + part(FeatureBlock(batch.candidate.ids[:, columns], batch.candidate.dense), first.ids)
        assert torch.allclose(split.logits(hidden), network(first, batch.candidate), atol=1e-5)


def test_constants_of_dropped_fields_are_part_of_the_bias(network: Fscd, batch: Batch) -> None:
    network.train()
    for _ in range(20):
        network.inputs(batch.request, batch.candidate)
    network.eval().keep(["user", "item_group"])
    assert network.candidate_mean.abs().max() > 0
    check_split(network, batch, tuple(set(network.fields) - {"user", "item_group"}))
