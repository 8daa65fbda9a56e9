"""What serves gives the network's own logits: whatever the fields, with one request's row or one per candidate."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from contracts.config.training import Train
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureField, FeatureSpec, PairModel
from models.examples.batches import Batch, FeatureBlock
from models.inference import item_part, split_ranker
from models.inference.ensemble import Ensemble
from models.networks import registry
from models.networks.dnn import Dnn
from models.pair_rates import weights as pair_weights

pytestmark = pytest.mark.usefixtures("either")

TRAIN = Train(embedding_dim=4, hidden=(8, 6), cross_layers=2, cross_rank=3, dropout=0.0)


def network(name: str, spec: FeatureSpec, **settings: object) -> nn.Module:
    torch.manual_seed(1)
    made = registry.build(name, spec, TRAIN.model_copy(update=settings)).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    with torch.no_grad():
        made.embedding.weight[0] = 0.0  # type: ignore[union-attr, index, operator]
    made.prior.logit.copy_(torch.randn(len(made.prior.logit)))  # type: ignore[union-attr, operator, arg-type]
    return made


def encoded(block: FeatureBlock, rows: int | None = None) -> Encoded:
    return Encoded(block.ids[:rows].numpy(), block.dense[:rows].numpy())


def compare(made: nn.Module, spec: FeatureSpec, request: FeatureBlock, candidate: FeatureBlock) -> None:
    """Computed as it stands, and with the items' part of the first layer read from a table."""
    width = spec.id_width("item")
    served, given = split_ranker.of(made, width), encoded(candidate)
    with torch.inference_mode():
        expected = made(request, candidate)
    part = item_part.table(made, Encoded(given.ids[:, :width], given.dense))
    for known in (None, part):
        found = served.logits(served.begin(encoded(request)), given, known)
        torch.testing.assert_close(torch.from_numpy(found), expected, atol=1e-5, rtol=1e-5)


def test_cross_layers_of_full_rank(spec: FeatureSpec, batch: Batch) -> None:
    compare(network("dcn_v2", spec, cross_rank=0), spec, FeatureBlock(*(part[:1] for part in batch.request)),
            batch.candidate)


@pytest.mark.parametrize("numbers", ["piecewise_linear", "periodic"])
@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din", "wukong"])
@pytest.mark.parametrize("rows", [1, 64])
def test_encoded_numbers(spec: FeatureSpec, batch: Batch, name: str, numbers: str, rows: int) -> None:
    made = network(name, spec, numbers=numbers)
    compare(made, spec, FeatureBlock(*(part[:rows] for part in batch.request)), batch.candidate)
    assert isinstance(split_ranker.of(made), split_ranker.PlainRanker) == (name == "wukong")


def test_stacked_crosses(spec: FeatureSpec, batch: Batch) -> None:
    compare(network("dcn_v2", spec, cross_structure="stacked"), spec,
            FeatureBlock(*(part[:1] for part in batch.request)), batch.candidate)


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din", "din_sequence", "deep_fm", "gdcn"])
@pytest.mark.parametrize("rows", [1, 64])
def test_the_networks_logits(spec: FeatureSpec, batch: Batch, name: str, rows: int) -> None:
    compare(network(name, spec), spec, FeatureBlock(*(part[:rows] for part in batch.request)), batch.candidate)


@pytest.mark.parametrize("rows", [1, 64])
def test_an_ensembles_logits(spec: FeatureSpec, batch: Batch, rows: int) -> None:
    members = [network("dnn", spec), network("dnn", spec), network("wukong", spec)]
    nn.init.normal_(members[1].mlp.rest[-1].weight)  # type: ignore[union-attr, index, arg-type]
    compare(Ensemble(members), spec, FeatureBlock(*(part[:rows] for part in batch.request)), batch.candidate)


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din", "din_sequence"])
def test_products_of_crosses(spec: FeatureSpec, batch: Batch, name: str) -> None:
    fields = [field for field in spec.fields if field.side != "cross"]
    product = FeatureField(name="both", kind="cross", side="cross", parts=("user_group", "item_group"),
                           representation="product")
    narrow = spec.model_copy(update={"fields": (*fields, product)})
    width = narrow.id_width("item")
    candidate = FeatureBlock(batch.candidate.ids[:, :width], batch.candidate.dense)
    compare(network(name, narrow), narrow, FeatureBlock(*(part[:1] for part in batch.request)), candidate)


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din", "din_sequence"])
def test_pair_rates(pair_spec: FeatureSpec, name: str) -> None:
    model = PairModel(head="dot", dim=5)
    wide = pair_weights.with_pair_rates(pair_spec, [("city", "brand"), ("age", "tags")], model)
    wide = wide.model_copy(update={"pair_model": model})
    blocks = []
    for side in ("request", "candidate"):
        slots, dense = wide.block_ids(side), wide.block_dense(side)  # type: ignore[arg-type]
        ids = [torch.randint(1 if slot.width == 1 else 0, slot.size, (9, slot.width)) for slot in slots]
        blocks.append(FeatureBlock(torch.cat(ids, dim=1).int(), torch.randn(9, len(dense))))
    compare(network(name, wide), wide, FeatureBlock(*(part[:1] for part in blocks[0])), blocks[1])


def test_weights_in_training_serve_as_they_are(spec: FeatureSpec) -> None:
    """Batch normalisation is part of the hidden layers until it is folded into them."""
    made = Dnn(spec, 4, (8,), 0.0)
    made.mlp.norms = nn.ModuleList([nn.BatchNorm1d(8)])
    assert isinstance(split_ranker.of(made), split_ranker.PlainRanker)
    made.mlp.norms = None
    assert isinstance(split_ranker.of(made), split_ranker.SplitDnn)
    assert isinstance(split_ranker.of(made.double()), split_ranker.PlainRanker)
