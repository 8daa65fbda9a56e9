"""What a network takes over: the parent's logits wherever both specs know the row, whatever moved in between."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.bundle import bundle
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.config.config import Config
from contracts.errors import BundleError
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from contracts.summaries.train import WarmStartFigures
from models.examples.batches import FeatureBlock
from models.layers.own_rows import dealt
from models.networks import registry
from models.networks.two_tower import TwoTower
from models.training import checkpoint, warm_start
from models.training.warm_start import Parent, WarmStart

NO_PARITY = ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0)
CONFIG = Config.model_validate({
    "name": "tiny", "log": {"path": "log"}, "label": {"expression": "clicked"},
    "fields": [{"name": "item", "kind": "categorical", "side": "item"}],
    "train": {"embedding_dim": 4, "hidden": (6, 5), "cross_rank": 7, "tower_dim": 8, "tower_hidden": (9,)},
    "prerank": {"kind": "towers"},
})
TRAINED = [name for name in registry.names() if name != "popularity"]


def fitted(users: list[str], items: list[str], extra: str = "", product: bool = False) -> tuple[FeatureSpec, dict]:
    """User, history, hour and item, their cross, and `extra`: a further field in front of the user or the item."""
    keys = {"user": Vocabulary.of(users, "string"), "item": Vocabulary.of(items, "string")}
    sizes = {name: len(values) + 2 for name, values in keys.items()}
    codes = [u * sizes["item"] + i for u in range(1, sizes["user"]) for i in range(1, sizes["item"])]
    keys |= {"both": Vocabulary.of(codes, "int64"), "extra": Vocabulary.of(["x", "y"], "string")}
    fields = [
        FeatureField(name="user", kind="categorical", side="user", vocabulary="user", size=sizes["user"]),
        FeatureField(name="history", kind="sequence", side="user", of="item", vocabulary="item", size=sizes["item"],
                     length=3),
        FeatureField(name="hour", kind="numeric", side="context", edges={3: (6.0, 12.0)}, mean=12.0, std=6.0),
        FeatureField(name="item", kind="categorical", side="item", vocabulary="item", size=sizes["item"]),
        FeatureField(name="price", kind="numeric", side="item", mean=1.0, std=2.0),
        FeatureField(name="both", kind="cross", side="cross", parts=("user", "item"), vocabulary="both",
                     size=len(keys["both"]) + 2, representation="product" if product else "embedding"),
    ]
    if extra:
        fields.insert(0, FeatureField(name="extra", kind="categorical", side=extra, vocabulary="extra", size=4))  # type: ignore[arg-type]
    return FeatureSpec(fields=tuple(fields)), keys


def rows(made: tuple[FeatureSpec, dict], users: list[str], items: list[str]) -> tuple[FeatureBlock, FeatureBlock]:
    encoder, draw = Encoder(*made), np.random.default_rng(1)
    raw = {"user": draw.choice(users, 50).tolist(), "item": draw.choice(items, 50).tolist(),
           **{name: [draw.choice(items, draw.integers(4)).tolist() for _ in range(50)] for name in ("history", "seen")},
           "hour": draw.uniform(0, 24, 50), "price": draw.uniform(0, 3, 50), "width": draw.uniform(0, 3, 50),
           "extra": draw.choice(["x", "y"], 50).tolist()}
    request, item = encoder.encode(raw, "user", "context"), encoder.encode(raw, "item")
    parts = {name: encoder.field_ids(made[0].by_name[name], raw[name])[0][:, 0] for name in ("user", "item")}
    candidate = np.concatenate([item.ids, encoder.cross_ids(parts)], axis=1)
    return (FeatureBlock(torch.from_numpy(request.ids), torch.from_numpy(request.dense)),
            FeatureBlock(torch.from_numpy(candidate), torch.from_numpy(item.dense)))


def build(name: str, spec: FeatureSpec, config: Config) -> torch.nn.Module:
    s = config.train
    if name == "two_tower":
        return TwoTower(spec, s.embedding_dim, s.tower_hidden, s.tower_dim, s.dropout, s.temperature)
    return registry.build(name, spec, s)


def parent(
    folder: Path, name: str, made: tuple[FeatureSpec, dict], config: Config = CONFIG
) -> tuple[Parent, torch.nn.Module]:
    """A network with weights of its own everywhere, as a bundle would hold it."""
    torch.manual_seed(3)
    network: Any = build(name, made[0], config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.3)
        network.embedding.weight[0] = 0.0
    manifest = Manifest(schema_version=SCHEMA_VERSION, name="tiny", content_hash="0" * 64, created=datetime.now(UTC),
                        files={}, metrics=BundleMetrics(ranker=name, parity=NO_PARITY))
    found = Parent(folder, manifest, *made, config)
    path = folder / ("retrieval/towers.safetensors" if name == "two_tower" else "rank/weights.safetensors")
    checkpoint.save(network, path)
    return found, network.eval()


def started(
    start: Parent, name: str, made: tuple[FeatureSpec, dict], config: Config = CONFIG
) -> tuple[torch.nn.Module, WarmStartFigures]:
    torch.manual_seed(4)
    network = build(name, made[0], config)
    figures = WarmStart(start, *made, config.train)(network, name, lambda spec, config: build(name, spec, config))
    assert figures is not None
    return network.eval(), figures


@pytest.mark.parametrize("name", [*TRAINED, "two_tower"])
def test_the_same_spec_gives_the_parents_logits(tmp_path, name):
    made = fitted(["u1", "u2"], ["i1", "i2", "i3"])
    start, old = parent(tmp_path, name, made)
    network, figures = started(start, name, made)
    batch = rows(made, ["u1", "u2"], ["i1", "i2", "i3"])
    assert torch.equal(network(*batch), old(*batch))
    assert (figures.anew, figures.rows_carried) == ((), figures.rows)


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("name", [*TRAINED, "two_tower"])
def test_a_vocabulary_that_grew_and_shrank_leaves_known_rows_as_they_were(tmp_path, name, product):
    before, now = fitted(["u1", "u3", "gone"], ["i1", "i3"], product=product), fitted(
        ["u0", "u1", "u2", "u3"], ["i0", "i1", "i3"], product=product)
    start, old = parent(tmp_path, name, before)
    network, figures = started(start, name, now)
    known = ["u1", "u3", "never seen"], ["i1", "i3", "never seen"]
    torch.testing.assert_close(network(*rows(now, *known)), old(*rows(before, *known)))
    assert figures.anew == ()
    assert 0 < figures.rows_carried < figures.rows


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("name", [*TRAINED, "two_tower"])
def test_the_order_of_the_fields_is_nothing_to_what_they_mean(tmp_path, name, product):
    """Weights of a field go over by its name, wherever it stands."""
    before = fitted(["u1", "u2"], ["i1", "i2"], extra="user", product=product)
    extra, *others = before[0].fields
    now = FeatureSpec(fields=(*others[::-1], extra)), before[1]
    start, old = parent(tmp_path, name, before)
    network, figures = started(start, name, now)
    assert (figures.anew, figures.cold) == ((), None)
    known = ["u1", "u2"], ["i1", "i2"]
    torch.testing.assert_close(network(*rows(now, *known)), old(*rows(before, *known)))


@pytest.mark.parametrize("name", ["din", "din_sequence"])
def test_attention_goes_with_its_history(tmp_path, name):
    """Be there another one before it, and a third that is new."""
    plain = fitted(["u1", "u2"], ["i1", "i2"])
    first = plain[0].by_name["history"]
    seen, bought = (first.model_copy(update={"name": other}) for other in ("seen", "bought"))
    others = [field for field in plain[0].fields if field.name != "history"]
    before = FeatureSpec(fields=(first, seen, *others)), plain[1]
    start, old = parent(tmp_path, name, before)
    turned = FeatureSpec(fields=(seen, first, *others)), plain[1]
    network, figures = started(start, name, turned)
    assert figures.anew == ()
    known = ["u1", "u2"], ["i1", "i2"]
    torch.testing.assert_close(network(*rows(turned, *known)), old(*rows(before, *known)))
    network, figures = started(start, name, (FeatureSpec(fields=(bought, first, *others)), plain[1]))
    assert figures.cold is None
    assert {key.split(".")[1] for key in figures.anew} == {"0"}
    carried, kept = (each.attention[place].query.weight for each, place in ((network, 1), (old, 0)))  # type: ignore[index, union-attr]
    assert torch.equal(carried, kept)


@pytest.mark.parametrize("name", ["din", "din_sequence"])
@pytest.mark.parametrize("slots", [2, 3, 4])
def test_attention_has_nothing_to_do_with_fields(tmp_path, name, slots):
    """Be all that is read of the request as wide as its queries, keys and values together, or its vectors as many as
    one has numbers."""
    made = fitted(["u1", "u2"], ["i1", "i2"], extra="user")
    of_request = [made[0].by_name[field] for field in ("user", "history", "extra")]
    first = [*of_request, of_request[2].model_copy(update={"name": "again"})][:slots]
    others = [made[0].by_name[field] for field in ("item", "price")]
    before, now = (FeatureSpec(fields=(*fields, *others)) for fields in (first, first[::-1]))
    keys = {**made[1], "again": made[1]["extra"]}
    start, old = parent(tmp_path, name, (before, keys))
    network, figures = started(start, name, (now, keys))
    assert (figures.anew, figures.cold) == ((), None)
    known = ["u1", "u2"], ["i1", "i2"]
    torch.testing.assert_close(network(*rows((now, keys), *known)), old(*rows((before, keys), *known)))


@pytest.mark.parametrize("name", TRAINED)
def test_numbers_go_by_their_names(tmp_path, name):
    made = fitted(["u1", "u2"], ["i1", "i2"])
    width = made[0].by_name["price"].model_copy(update={"name": "width", "mean": 0.5})
    before, now = ((FeatureSpec(fields=fields), made[1])
                   for fields in ((width, *made[0].fields), (*made[0].fields, width)))
    start, old = parent(tmp_path, name, before)
    network, figures = started(start, name, now)
    assert (figures.anew, figures.cold) == ((), None)
    known = ["u1", "u2"], ["i1", "i2"]
    torch.testing.assert_close(network(*rows(now, *known)), old(*rows(before, *known)))


@pytest.mark.parametrize("name", ["wukong", "fives", "final_net"])
def test_the_first_number_of_a_block_starts_anew_by_itself_and_the_last_goes_alone(tmp_path, name):
    whole = fitted(["u1", "u2"], ["i1", "i2"])
    without = FeatureSpec(fields=tuple(field for field in whole[0].fields if field.name != "hour")), whole[1]
    for before, now, anew in ((without, whole, {"numbers.0.weight", "numbers.0.bias"}), (whole, without, set())):
        start, _ = parent(tmp_path / str(len(anew)), name, before)
        _, figures = started(start, name, now)
        assert figures.cold is None
        assert set(figures.anew) == (anew if name == "wukong" else set())


@pytest.mark.parametrize("name", ["final_net", "wukong", "fives"])
def test_a_field_in_the_place_of_another_takes_nothing_over_from_it(tmp_path, name):
    """With the vectors of both, and what reads them, at zero only what was taken over could tell them apart."""
    before = fitted(["u1", "u2"], ["i1", "i2"], extra="user")
    renamed = FeatureSpec(fields=tuple(
        field.model_copy(update={"name": "fresh"}) if field.name == "extra" else field for field in before[0].fields))
    now = renamed, {**before[1], "fresh": before[1]["extra"]}
    start, _ = parent(tmp_path, name, before)
    network, figures = started(start, name, now)
    assert figures.cold is None
    torch.manual_seed(4)
    cold, old = build(name, now[0], CONFIG), build(name, before[0], CONFIG)
    checkpoint.load(old, start.weights(name))  # type: ignore[arg-type]
    place = [slot.name for slot in network.embedding.request.slots].index("fresh")  # type: ignore[union-attr]
    read: dict[str, tuple[Any, ...]] = {
        "final_net": (slice(None), slice(4 * place, 4 * place + 4)), "wukong": (place,), "fives": (place,)}
    parameter = {"final_net": "gates.linear.weight", "wukong": "layers.0.crosses.projection", "fives": "transforms"}
    found, initial, carried = (dict(each.named_parameters())[parameter[name]] for each in (network, cold, old))
    assert torch.equal(found[read[name]], initial[read[name]])
    assert not torch.equal(found, initial)
    assert found[read[name]].shape == carried[read[name]].shape


def test_frequencies_go_with_their_number(tmp_path):
    before = fitted(["u1", "u2"], ["i1", "i2"])
    width = before[0].by_name["price"].model_copy(update={"name": "width", "mean": 0.5})
    specs = [FeatureSpec(fields=fields) for fields in ((width, *before[0].fields), (*before[0].fields, width))]
    periodic = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"numbers": "periodic"})})
    old: Any
    start, old = parent(tmp_path, "dnn", (specs[0], before[1]), periodic)
    network: Any
    network, figures = started(start, "dnn", (specs[1], before[1]), periodic)
    assert figures.anew == ()
    for name, column in (("price", 1), ("width", 0)):
        places = [[slot.name for slot in spec.block_dense("candidate")].index(name) for spec in specs]
        assert places[0] == column
        frequencies = [each.embedding.candidate_encoding.frequencies for each in (old, network)]
        assert torch.equal(frequencies[0][places[0]], frequencies[1][places[1]])


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("name", ["logistic_regression", "factorisation_machine", "dnn", "din", "dcn_v2", "final_net",
                                  "two_tower"])
def test_a_new_field_leaves_the_others_in_place(tmp_path, name, side):
    """With the new values' vectors at zero the new field says nothing, and the rest is the parent."""
    before, now = fitted(["u1", "u2"], ["i1", "i2"]), fitted(["u1", "u2"], ["i1", "i2"], extra=side)
    start, old = parent(tmp_path, name, before)
    network, figures = started(start, name, now)
    assert figures.anew == ()
    table: Any = network.embedding
    reader = table.request if side == "user" else table.candidate
    first = int(reader.offsets[reader.places["extra"]]) + 1
    with torch.no_grad():
        assert table.weight[first : first + 3].abs().sum() > 0 or name == "logistic_regression"
        table.weight[first : first + 3] = 0.0
    known = ["u1", "u2"], ["i1", "i2"]
    torch.testing.assert_close(network(*rows(now, *known)), old(*rows(before, *known)))


@pytest.mark.parametrize(("name", "change", "said"), [
    ("dnn", {"hidden": (6, 11)}, r"dnn starts cold: mlp\.rest\.2\.weight .* \[5, 6\] there and \[11, 6\] here"),
    ("dnn", {"embedding_dim": 3}, r"embedding\.weight .* \[\d+, 4\] there and \[\d+, 3\] here"),
    ("final_mlp", {"hidden": (6, 11)}, "streams"), ("final_net", {"hidden": (6,)}, "output"),
    ("wukong", {"wukong_layers": 3}, r"layers\.2"), ("fives", {"edge_layers": 3}, r"edges\.structure"),
    ("two_tower", {"tower_hidden": (8,)}, "two_tower starts cold: user"),
    ("wukong", {"wukong_layers": 1}, r"layers\.1.* \[.*\] there and nothing here"),
    ("final_net", {"hidden": (6, 6)}, "layers"),
    ("dcn_v2", {"cross_structure": "stacked"}, "cross_structure .* parallel there and stacked here"),
    ("gdcn", {"cross_structure": "stacked"}, "cross_structure .* parallel there and stacked here"),
])
def test_where_vectors_or_hidden_layers_do_not_fit_nothing_goes_over_and_it_is_said(tmp_path, name, change, said):
    made = fitted(["u1"], ["i1"])
    start, _ = parent(tmp_path, name, made)
    other = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update=change)})
    network, figures = started(start, name, made, other)
    torch.manual_seed(4)
    before = build(name, made[0], other).state_dict()
    assert all(torch.equal(tensor, before[key]) for key, tensor in network.state_dict().items())
    assert re.search(said, figures.cold or "")
    assert figures.rows_carried == 0
    assert set(figures.anew) == {key for key, _ in network.named_parameters()}


@pytest.mark.parametrize("name", ["dcn_v2", "gdcn"])
def test_stacked_crosses_go_over_to_stacked_ones_alone(tmp_path, name):
    """In the other one the MLP reads the inputs, not the crosses."""
    made = fitted(["u1", "u2"], ["i1", "i2"])
    stacked = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"cross_structure": "stacked"})})
    start, old = parent(tmp_path, name, made, stacked)
    network, figures = started(start, name, made, stacked)
    batch = rows(made, ["u1", "u2"], ["i1", "i2"])
    assert (figures.cold, figures.anew) == (None, ())
    assert torch.equal(network(*batch), old(*batch))
    _, figures = started(start, name, made)
    assert re.search("cross_structure .* stacked there and parallel here", figures.cold or "")
    assert figures.rows_carried == 0


def test_a_layer_beside_them_starts_anew_by_itself(tmp_path):
    made = fitted(["u1"], ["i1"])
    start, _ = parent(tmp_path, "dcn_v2", made)
    other = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"cross_rank": 3})})
    _, figures = started(start, "dcn_v2", made, other)
    assert figures.cold is None
    assert figures.rows_carried == figures.rows
    assert figures.anew
    assert all(key.startswith("crosses") for key in figures.anew)


def test_a_layer_as_wide_as_two_different_things_is_not_mixed_up(tmp_path):
    """Crosses of full width, whose rank is as wide as the inputs; an MLP as wide knows its inputs from its outputs."""
    made = fitted(["u1"], ["i1"])
    renamed = FeatureSpec(fields=tuple(
        one.model_copy(update={"name": "cost" if one.name == "price" else one.name}) for one in made[0].fields))
    embedding: Any = registry.build("dnn", renamed, CONFIG.train).embedding
    width = embedding.candidate.width
    doubtful = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={
        "hidden": (width, 5), "cross_rank": width + embedding.request.width})})
    start, _ = parent(tmp_path, "dcn_v2", made, doubtful)
    _, figures = started(start, "dcn_v2", (renamed, made[1]), doubtful)
    assert figures.cold is None
    assert {"crosses.0.down.weight", "crosses.0.up.weight"} <= set(figures.anew)
    assert not [key for key in figures.anew if key.startswith(("mlp", "embedding"))]


def test_what_the_parent_does_not_hold_starts_from_nothing(tmp_path):
    made = fitted(["u1"], ["i1"])
    start, _ = parent(tmp_path, "dnn", made)
    network = build("dcn_v2", made[0], CONFIG)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    assert WarmStart(start, *made, CONFIG.train)(network, "dcn_v2", lambda s, c: build("dcn_v2", s, c)) is None
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert start.weights("popularity") is None


def test_a_bundle_without_its_settings_is_refused(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "file").write_text("x")
    bundle.publish(tmp_path / "build", tmp_path / "bundle", "tiny")
    with pytest.raises(BundleError, match="--cold"):
        Parent.read(tmp_path / "bundle")


@pytest.mark.parametrize("product", [False, True])
def test_of_several_processes_each_takes_over_its_own_rows(
    tmp_path: Path, product: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_start, "PIECE", 2)
    before, now = (fitted(users, ["i1", "i2", "i3"], product=product) for users in (["u1", "u2"], ["u0", "u1", "u2"]))
    start, _ = parent(tmp_path, "dnn", before)
    whole, figures = started(start, "dnn", now)
    for rank in (0, 1):
        torch.manual_seed(4)
        with dealt(rank, 2):
            part = build("dnn", now[0], CONFIG)
        found = WarmStart(start, *now, CONFIG.train)(part, "dnn", lambda spec, config: build("dnn", spec, config))
        assert found == figures
        tables = {"embedding.weight", "embedding.products.weight"}
        for name, tensor in part.state_dict().items():
            wanted = whole.state_dict()[name]
            assert torch.equal(tensor, wanted[rank::2] if name in tables else wanted), name
