from __future__ import annotations

import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.layers.embedding import FusedEmbedding
from models.layers.product_cross import FactorisedCrosses
from models.networks import registry


def with_products(spec: FeatureSpec) -> FeatureSpec:
    crosses = tuple(
        FeatureField(name="_".join(parts), kind="cross", side="cross", parts=parts, representation="product")
        for parts in (("user_group", "item_group"), ("user_group", "item_group", "price#3"))
    )
    return spec.model_copy(update={"fields": (*spec.fields, *crosses)})


def test_the_product_of_the_factors_of_the_parts(spec: FeatureSpec, batch: Batch) -> None:
    spec = with_products(spec)
    module = FactorisedCrosses(spec, 3)
    found = module(batch.request.ids, batch.candidate.ids)
    sizes = [spec.slot(part).size for cross in spec.products() for part in cross.parts]
    starts = torch.tensor([0, *sizes]).cumsum(0).tolist()
    group = batch.request.ids[:, spec.slot("user_group").start]
    candidate = {slot.name: batch.candidate.ids[:, slot.start] for slot in spec.block_ids("candidate")}
    weight = module.weight
    first = weight[starts[0] + group] * weight[starts[1] + candidate["item_group"]]
    second = (weight[starts[2] + group] * weight[starts[3] + candidate["item_group"]]
              * weight[starts[4] + candidate["price#3"]])
    torch.testing.assert_close(found, torch.cat([first, second], dim=1))


def test_one_request_row_is_broadcast(spec: FeatureSpec, batch: Batch) -> None:
    module = FactorisedCrosses(with_products(spec), 3)
    one = batch.request.ids[:1]
    repeated = module(one.expand(len(batch.label), -1), batch.candidate.ids)
    torch.testing.assert_close(module(one, batch.candidate.ids), repeated)


def test_a_product_has_no_ids_of_its_own(spec: FeatureSpec) -> None:
    crossed = with_products(spec)
    assert crossed.id_width("cross") == spec.id_width("cross")
    assert crossed.tables() == spec.tables()


def test_every_model_takes_products(spec: FeatureSpec, settings: Train, batch: Batch) -> None:
    for name in registry.names():
        torch.manual_seed(0)
        network = registry.build(name, with_products(spec), settings).eval()
        one = FeatureBlock(batch.request.ids[:1], batch.request.dense[:1])
        assert network(one, batch.candidate).shape == batch.label.shape
        if name != "popularity":
            embeddings = [module for module in network.modules() if isinstance(module, FusedEmbedding)]
            assert any(module.products is not None for module in embeddings)
