"""The encoding of a run is taken over as it is, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, DataError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureField, FeatureSpec, PairModel
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding import kept_encoding

FIELDS = [
    {"name": "place", "kind": "categorical", "side": "context"},
    {"name": "shop", "kind": "categorical", "side": "item"},
]


def config(fields: list[dict[str, str]]) -> Config:
    return Config.model_validate({"name": "small", "fields": fields, "log": {"path": "log"},
                                  "label": {"expression": "clicked"}})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The output of a run whose search has found a cross and whose pairs have rates."""
    folder = Artifacts(tmp_path / "run").encoding
    folder.mkdir(parents=True)
    for name in ("place", "shop"):
        vocabulary.write(folder, name, Vocabulary.of([f"{name} {number}" for number in range(5)], "string"))
    plain = tuple(FeatureField(name=field["name"], kind="categorical", side=field["side"], vocabulary=field["name"],
                               size=7) for field in FIELDS)
    parts = ("place", "shop")
    cross = FeatureField(name="place_x_shop", kind="cross", side="cross", parts=parts, buckets=9, size=11)
    rate = FeatureField(name="place_x_shop_rate", kind="statistic", side="cross", parts=parts)
    FeatureSpec(fields=(*plain, cross, rate), pair_model=PairModel(head="table", dim=0)).write(folder)
    return tmp_path / "run"


@pytest.mark.parametrize("part", ["", "encoding"])
def test_fields_found_crosses_and_vocabularies_are_taken_over_and_rates_are_not(
    run: Path, tmp_path: Path, part: str
) -> None:
    out = Artifacts(tmp_path / "out")
    spec = kept_encoding.keep(run / part, config(FIELDS), out)
    assert spec == FeatureSpec.read(out.encoding)
    assert [field.name for field in spec.fields] == ["place", "shop", "place_x_shop"]
    assert spec.pair_model is None
    ours, theirs = (vocabulary.read_all(folder) for folder in (out.encoding, Artifacts(run).encoding))
    assert ours.keys() == theirs.keys()
    assert all(ours[name].keys().to_pylist() == theirs[name].keys().to_pylist() for name in ours)


def test_other_fields_are_refused_and_leave_what_was_there(run: Path, tmp_path: Path) -> None:
    out, other = Artifacts(tmp_path / "out"), [FIELDS[0], FIELDS[1] | {"name": "owner"}]
    with pytest.raises(ConfigError, match="differ in owner, shop: leave --encoding out"):
        kept_encoding.keep(run, config(other), out)
    assert not out.encoding.exists()


def test_a_folder_without_an_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no feature spec"):
        kept_encoding.keep(tmp_path, config(FIELDS), Artifacts(tmp_path / "out"))
