"""What is assembled equals what the encoder, the towers and plain Python give for each key."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contracts import summary
from contracts.artifacts import BID, ITEM, TEST_LOGITS, TEST_ROWS, USER, Artifacts
from contracts.bundle.bundle import read_manifest, save_array
from contracts.config.config import Config
from contracts.errors import BundleError, DataError, ParityError, SchemaError
from models.examples.batches import FeatureBlock
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle


def table(folder: Path) -> dict[str, list[Any]]:
    return pq.read_table(folder).to_pydict()


@pytest.fixture
def items(trained: Artifacts) -> dict[str, list[Any]]:
    return table(trained.online_items)


def test_every_item_row_is_what_the_encoder_gives(loaded: LoadedBundle, items: dict[str, list[Any]]) -> None:
    expected = loaded.encoder.encode(items, "item")
    rows = loaded.items.rows(items[ITEM])
    assert sorted(rows.tolist()) == list(range(80))
    np.testing.assert_array_equal(loaded.items.ids[rows], expected.ids)
    np.testing.assert_array_equal(loaded.items.dense[rows], expected.dense)


def test_every_user_row_is_what_the_encoder_gives(loaded: LoadedBundle, trained: Artifacts) -> None:
    users = table(trained.online_users)
    for n, key in enumerate(users[USER]):
        expected = loaded.encoder.encode({name: [values[n]] for name, values in users.items()}, "user")
        row = loaded.users.row(key)
        np.testing.assert_array_equal(loaded.users.ids[row], expected.ids[0])
        np.testing.assert_array_equal(loaded.users.dense[row], expected.dense[0])


def test_unknown_keys_get_the_encoding_of_nothing(loaded: LoadedBundle) -> None:
    nobody, nothing = loaded.encoder.encode({}, "user"), loaded.encoder.encode({}, "item")
    assert loaded.users.row("stranger") == loaded.items.row("stranger") == -1
    np.testing.assert_array_equal(loaded.users.ids[-1], nobody.ids[0])
    np.testing.assert_array_equal(loaded.users.dense[-1], nobody.dense[0])
    np.testing.assert_array_equal(loaded.items.ids[-1], nothing.ids[0])


def test_item_vectors_are_the_towers(loaded: LoadedBundle) -> None:
    ids, dense = loaded.items.ids[:-1].copy(), loaded.items.dense[:-1].copy()
    with torch.inference_mode():
        expected = loaded.towers.item_vector(FeatureBlock(torch.from_numpy(ids), torch.from_numpy(dense))).numpy()
    np.testing.assert_allclose(loaded.item_vectors, expected, atol=1e-6)


def test_bids_follow_their_items(loaded: LoadedBundle, items: dict[str, list[Any]]) -> None:
    assert loaded.bids is not None
    np.testing.assert_allclose(loaded.bids[loaded.items.rows(items[ITEM])], items[BID], rtol=1e-6)
    expected = loaded.settings.train.temperature * np.log(loaded.bids)
    np.testing.assert_allclose(loaded.index.vectors[:, -1], expected, rtol=1e-5, atol=1e-6)


def test_filters_follow_their_items(loaded: LoadedBundle, items: dict[str, list[Any]]) -> None:
    rows = loaded.items.rows(items[ITEM])
    for name, value in (("category", "music"), ("brand", 10**12)):
        expected = [found == value for found in items[name]]
        assert loaded.filters[name].passing([str(value)])[rows].tolist() == expected


def test_recent_items_are_known_rows_in_order(loaded: LoadedBundle, trained: Artifacts) -> None:
    users = table(trained.online_users)
    for key, recent in zip(users[USER], users["_recent_items"], strict=True):
        rows = loaded.recent[loaded.users.row(key)]
        assert [loaded.items.key(row) for row in rows if row >= 0] == [item for item in recent if item != "gone"]
        assert (np.diff((rows < 0).astype(int)) >= 0).all()


def test_popularity_is_the_smoothed_click_rate(loaded: LoadedBundle, items: dict[str, list[Any]]) -> None:
    overall = sum(items["_clicks"]) / sum(items["_shown"])
    rate = {
        key: (clicks + 20 * overall) / (shown + 20)
        for key, clicks, shown in zip(items[ITEM], items["_clicks"], items["_shown"], strict=True)}
    order = [rate[loaded.items.key(row)] for row in loaded.popularity]
    assert sorted(loaded.popularity.tolist()) == list(range(80))
    assert order == sorted(order, reverse=True)


def test_metrics_reach_the_manifest(bundle_folder: Path) -> None:
    metrics = read_manifest(bundle_folder).metrics
    assert metrics is not None
    assert metrics.index is not None
    assert (metrics.parity.rows, metrics.parity.mismatches) == (64, 0)
    assert metrics.parity.max_logit_difference <= 1e-4
    assert metrics.index.mean == 1.0
    assert (metrics.ranker, metrics.users, metrics.items) == ("dnn", 60, 80)


def test_assembling_twice_gives_the_same_files(market: Any, trained: Artifacts, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assemble(market.config, trained, tmp_path / name)
    (tmp_path / "a" / "stale.npy").write_bytes(b"x")
    assemble(market.config, trained, tmp_path / "a")
    files = [sorted(p.relative_to(tmp_path / n) for p in (tmp_path / n).rglob("*") if p.is_file()) for n in ("a", "b")]
    assert files[0] == files[1]
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in files[0])


def test_without_bids_the_index_holds_the_plain_vectors(publish_bundle: Any) -> None:
    bundle = LoadedBundle.load(publish_bundle(has_bid=False))
    assert bundle.bids is None
    assert not bundle.settings.auction
    np.testing.assert_array_equal(bundle.index.vectors, bundle.item_vectors)


@pytest.mark.parametrize(("kind", "auction"), [("auto", True), ("auction", True), ("mmr", False), ("none", False)])
def test_the_kind_of_reranking_decides_the_auction(
    market: Any, trained: Artifacts, tmp_path: Path, kind: str, auction: bool
) -> None:
    config = Config.model_validate({**market.config.model_dump(), "rerank": {"kind": kind}})
    assemble(config, trained, tmp_path / "build")
    assert f'"auction": {str(auction).lower()}' in (tmp_path / "build" / "settings.json").read_text()


@pytest.mark.parametrize(("part", "command"), [
    ("models/dnn/weights.safetensors", "train"), ("models/dnn/calibration.safetensors", "train"),
    ("models/two_tower/weights.safetensors", "train"), ("models/pre_ranker/weights.safetensors", "train"),
    ("models/pre_ranker/calibration.safetensors", "train"),
    ("models/summary.json", "train"), ("online/users", "features"), ("online/items", "features"),
    ("parity", "features"),
])
def test_missing_part_names_the_step_to_run(
    market: Any, trained_copy: Artifacts, tmp_path: Path, part: str, command: str
) -> None:
    path = trained_copy.out / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises((BundleError, DataError), match=f"sluice {command}"):
        assemble(market.config, trained_copy, tmp_path / "build")


@pytest.mark.parametrize("column", ["_item", "category", "_bid", "_clicks"])
def test_missing_item_column(market: Any, trained_copy: Artifacts, tmp_path: Path, column: str) -> None:
    path = trained_copy.online_items / "part-0.parquet"
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(SchemaError, match=f"no column '{column}'"):
        assemble(market.config, trained_copy, tmp_path / "build")


def test_repeated_key(market: Any, trained_copy: Artifacts, tmp_path: Path) -> None:
    path = trained_copy.online_users / "part-0.parquet"
    users = pq.read_table(path)
    pq.write_table(pa.concat_tables([users, users.slice(0, 1)]), path)
    with pytest.raises(DataError, match="twice"):
        assemble(market.config, trained_copy, tmp_path / "build")


def test_weights_of_other_settings(market: Any, trained: Artifacts, tmp_path: Path) -> None:
    prerank = {"kind": "towers", "keep": 20, "hidden": [9]}
    changed = Config.model_validate({**market.config.model_dump(), "prerank": prerank})
    with pytest.raises(BundleError, match="other settings"):
        assemble(changed, trained, tmp_path / "build")


def test_a_ranker_that_was_not_trained(market: Any, trained_copy: Artifacts, tmp_path: Path) -> None:
    summary.write(trained_copy.out / "models", {"ranker": "din"})
    with pytest.raises(BundleError, match="sluice train"):
        assemble(market.config, trained_copy, tmp_path / "build")



def test_logits_that_training_did_not_write_are_refused(
    market: Any, trained_copy: Artifacts, tmp_path: Path
) -> None:
    path = trained_copy.model("dnn") / TEST_LOGITS
    save_array(path, np.load(path) + 0.001)
    with pytest.raises(ParityError, match=r"away from the one that training wrote, the limit is 0\.0001"):
        assemble(market.config, trained_copy, tmp_path / "build")


def test_parity_rows_that_training_did_not_score_are_refused(
    market: Any, trained_copy: Artifacts, tmp_path: Path
) -> None:
    save_array(trained_copy.model("dnn") / TEST_ROWS, np.arange(1000, 1100))
    with pytest.raises(BundleError, match="training scored other rows"):
        assemble(market.config, trained_copy, tmp_path / "build")
    (trained_copy.model("dnn") / TEST_LOGITS).unlink()
    with pytest.raises(BundleError, match=r"has no test_logits\.npy"):
        assemble(market.config, trained_copy, tmp_path / "build")
