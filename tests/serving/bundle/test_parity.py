"""Parity finds a changed id, vocabulary, weight or score, and says which row and slot."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contracts.artifacts import ROW, Artifacts
from contracts.config.training import Train
from contracts.errors import BundleError, ParityError, SchemaError
from contracts.features.encoding import Encoder
from contracts.features.vocabulary import Vocabulary
from serving.bundle import parity
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures


def check(folder: Path, bundle: LoadedBundle, encoder: Encoder | None = None) -> parity.Comparison:
    return parity.check(folder, encoder or bundle.encoder, bundle.ranker, bundle.calibration, 1e-4)


@pytest.fixture
def rewritten(bundle_folder: Path, tmp_path: Path) -> Callable[[str, Callable[[list[Any]], None]], Path]:
    """A copy of the parity folder in which one column was changed in place."""

    def rewrite(name: str, change: Callable[[list[Any]], None]) -> Path:
        folder = Path(shutil.copytree(bundle_folder / "parity", tmp_path / "parity"))
        table = pq.read_table(folder / parity.FILE)
        values = table.column(name).to_pylist()
        change(values)
        index = table.column_names.index(name)
        changed = pa.array(values, table.schema.field(name).type)
        pq.write_table(table.set_column(index, name, changed), folder / parity.FILE)
        return folder

    return rewrite


def test_several_values_of_a_context_field_are_compared_and_asked_alike(publish_bundle: Any) -> None:
    """Lists in the sample, in the server's encoding of it, and in requests lead to the same ids."""
    folder = publish_bundle(moods=True)
    bundle = LoadedBundle.load(folder)
    assert bundle.parity is not None
    assert (bundle.parity.rows, bundle.parity.mismatches) == (64, 0)
    features, seen = RequestFeatures(bundle), set()
    slot = features.request_ids["moods"]
    for row in pq.read_table(folder / "parity" / parity.FILE).to_pylist():
        said = {} if row["moods"] is None else {"moods": tuple(row["moods"])}
        asked = features.requester(RankQuery("nobody", 1, said)).inputs.ids
        assert asked[0, slot.start : slot.start + slot.width].tolist() == row["id:moods"]
        seen.add(tuple(row["id:moods"]))
    assert len(seen) > 4


def test_untouched_rows_agree(bundle_folder: Path, loaded: LoadedBundle) -> None:
    found = check(bundle_folder / "parity", loaded)
    assert (found.rows, found.mismatches, found.first) == (64, 0, "")
    assert found.max_logit_difference <= 1e-5


def test_rows_are_the_first_by_row_number(bundle_folder: Path) -> None:
    assert pq.read_table(bundle_folder / "parity" / parity.FILE).column(ROW).to_pylist() == list(range(64))


@pytest.mark.parametrize("slot", ["taste", "visits#2", "device", "brand", "taste_category", "hour_brand"])
def test_changed_id(rewritten: Callable[..., Path], loaded: LoadedBundle, slot: str) -> None:
    def change(ids: list[int]) -> None:
        ids[5] += 1

    sentence = rf"1 of 64 parity rows differ: row 5, slot '{slot}': \[\d+\] offline, \[\d+\] here"
    with pytest.raises(ParityError, match=sentence):
        check(rewritten(f"id:{slot}", change), loaded)


@pytest.mark.parametrize("slot", ["history", "tags"])
def test_changed_id_of_a_list(rewritten: Callable[..., Path], loaded: LoadedBundle, slot: str) -> None:
    def change(ids: list[list[int]]) -> None:
        ids[2] = [*ids[2][:-1], ids[2][-1] + 1]

    with pytest.raises(ParityError, match=f"row 2, slot '{slot}'"):
        check(rewritten(f"id:{slot}", change), loaded)


def test_changed_raw_number(rewritten: Callable[..., Path], loaded: LoadedBundle) -> None:
    """A price that stays in its bin changes no id: the logit alone shows it."""

    def change(prices: list[float | None]) -> None:
        prices[:] = [price + 1.0 if price and price > 5 else price for price in prices]

    with pytest.raises(ParityError, match=r"row \d+, logit"):
        check(rewritten("price", change), loaded)


@pytest.mark.parametrize("score", ["_logit", "_probability"])
def test_changed_or_missing_score(rewritten: Callable[..., Path], loaded: LoadedBundle, score: str) -> None:
    def change(values: list[float]) -> None:
        values[7] += 2e-4
        values[9] = float("nan")

    with pytest.raises(ParityError, match=r"2 of 64 parity rows differ: row 7, logit .* offline, .* here"):
        check(rewritten(score, change), loaded)


def test_small_differences_pass(rewritten: Callable[..., Path], loaded: LoadedBundle) -> None:
    def change(values: list[float]) -> None:
        values[7] += 5e-5

    assert check(rewritten("_logit", change), loaded).max_logit_difference == pytest.approx(5e-5, rel=0.1)


def test_changed_vocabulary(bundle_folder: Path, loaded: LoadedBundle) -> None:
    vocabularies = {**loaded.encoder.vocabularies}
    changed = Vocabulary.of(["aaa", *vocabularies["category"].keys().to_pylist()[1:]], "string")
    encoder = Encoder(loaded.spec, {**vocabularies, "category": changed})
    with pytest.raises(ParityError, match="slot 'category'"):
        check(bundle_folder / "parity", loaded, encoder)


def test_changed_weight(bundle_folder: Path) -> None:
    bundle = LoadedBundle.load(bundle_folder)
    with torch.no_grad():
        for parameter in bundle.ranker.parameters():
            parameter.add_(0.05)
    with pytest.raises(ParityError, match=r"of 64 parity rows differ: row \d+, logit .* offline, .* here"):
        check(bundle_folder / "parity", bundle)


def test_statistics_of_pairs_are_covered(publish_bundle: Callable[..., Path]) -> None:
    """The server's two look-ups and head give the offline logit; another vector of one value is found out."""
    folder = publish_bundle(pairs=[("taste", "category"), ("hour#4", "tags")])
    bundle = LoadedBundle.load(folder)
    assert check(folder / "parity", bundle).mismatches == 0
    assert [field.name for field in bundle.spec.pair_rates()] == ["taste_x_category_rate", "hour#4_x_tags_rate"]
    network: Any = bundle.ranker
    statistics = network.embedding.pair_rates
    with torch.no_grad():
        statistics.scorer.vectors[statistics.starts["category"] + 2] += 1.0
    with pytest.raises(ParityError, match=r"row \d+, logit"):
        check(folder / "parity", bundle)


def test_without_rows_nothing_can_be_checked(tmp_path: Path, loaded: LoadedBundle) -> None:
    with pytest.raises(BundleError, match="cannot be checked"):
        check(tmp_path, loaded)
    with pytest.raises(BundleError, match="holds no parity rows"):
        parity.write(tmp_path / "none", tmp_path, 5, loaded.spec, loaded.ranker, loaded.calibration)


@pytest.mark.parametrize("name", ["price", "id:tags"])
def test_missing_sampled_column(trained_copy: Artifacts, tmp_path: Path, loaded: LoadedBundle, name: str) -> None:
    path = trained_copy.parity / "part-0.parquet"
    pq.write_table(pq.read_table(path).drop_columns([name]), path)
    with pytest.raises(SchemaError, match=f"no column '{name}'"):
        parity.write(trained_copy.parity, tmp_path / "p", 5, loaded.spec, loaded.ranker, loaded.calibration)


@pytest.mark.parametrize("name", ["taste", "id:brand", "_logit"])
def test_missing_stored_column(bundle_copy: Path, loaded: LoadedBundle, name: str) -> None:
    path = bundle_copy / "parity" / parity.FILE
    pq.write_table(pq.read_table(path).drop_columns([name]), path)
    with pytest.raises(SchemaError, match=f"no column '{name}'"):
        check(path.parent, loaded)


def test_list_of_another_length(trained_copy: Artifacts, tmp_path: Path, loaded: LoadedBundle) -> None:
    path = trained_copy.parity / "part-0.parquet"
    table = pq.read_table(path)
    short = pa.array([ids[:1] for ids in table.column("id:tags").to_pylist()])
    pq.write_table(table.set_column(table.column_names.index("id:tags"), "id:tags", short), path)
    with pytest.raises(SchemaError, match="does not hold 2 id"):
        parity.write(trained_copy.parity, tmp_path / "p", 5, loaded.spec, loaded.ranker, loaded.calibration)


def test_tolerance_follows_the_precision() -> None:
    assert parity.tolerance(Train()) == 1e-4
    assert parity.tolerance(Train(precision="bf16")) == 1e-2
