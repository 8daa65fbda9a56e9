"""What a network takes over: the parent's logits wherever both specs know the row, whatever moved in between."""

from __future__ import annotations

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
           "history": [draw.choice(items, draw.integers(4)).tolist() for _ in range(50)],
           "hour": draw.uniform(0, 24, 50), "price": draw.uniform(0, 3, 50),
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


def parent(folder: Path, name: str, made: tuple[FeatureSpec, dict]) -> tuple[Parent, torch.nn.Module]:
    """A network with weights of its own everywhere, as a bundle would hold it."""
    torch.manual_seed(3)
    network: Any = build(name, made[0], CONFIG)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.3)
        network.embedding.weight[0] = 0.0
    manifest = Manifest(schema_version=SCHEMA_VERSION, name="tiny", content_hash="0" * 64, created=datetime.now(UTC),
                        files={}, metrics=BundleMetrics(ranker=name, parity=NO_PARITY))
    found = Parent(folder, manifest, *made, CONFIG)
    path = folder / ("retrieval/towers.safetensors" if name == "two_tower" else "rank/weights.safetensors")
    checkpoint.save(network, path)
    return found, network.eval()


def started(start: Parent, name: str, made: tuple[FeatureSpec, dict]) -> tuple[torch.nn.Module, WarmStartFigures]:
    torch.manual_seed(4)
    network = build(name, made[0], CONFIG)
    figures = WarmStart(start, *made, CONFIG.train)(network, name, lambda spec, config: build(name, spec, config))
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


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("name", ["logistic_regression", "factorisation_machine", "dnn", "din", "dcn_v2", "two_tower"])
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


def test_a_layer_of_another_shape_and_one_of_doubtful_columns_start_anew(tmp_path):
    made = fitted(["u1"], ["i1"])
    start, _ = parent(tmp_path, "dnn", made)
    wider = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"hidden": (6, 11)})})
    network = registry.build("dnn", made[0], wider.train)
    figures = WarmStart(start, *made, wider.train)(network, "dnn", lambda spec, config: build("dnn", spec, config))
    assert figures is not None
    assert figures.anew == ("mlp.rest.2.weight", "mlp.rest.2.bias", "mlp.rest.5.weight")
    renamed = FeatureSpec(fields=tuple(
        one.model_copy(update={"name": "cost" if one.name == "price" else one.name}) for one in made[0].fields))
    embedding: Any = registry.build("dnn", renamed, CONFIG.train).embedding
    width = embedding.candidate.width
    doubtful = CONFIG.train.model_copy(update={"hidden": (width, 5)})
    start = Parent(start.folder, start.manifest, *made, CONFIG.model_copy(update={"train": doubtful}))
    torch.manual_seed(3)
    checkpoint.save(registry.build("dnn", made[0], doubtful), tmp_path / "rank" / "weights.safetensors")
    network = registry.build("dnn", renamed, doubtful)
    figures = WarmStart(start, renamed, made[1], doubtful)(network, "dnn", lambda s, c: build("dnn", s, c))
    assert figures is not None
    assert "mlp.first.candidate" in figures.anew
    assert "embedding.weight" not in figures.anew


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
