"""What is assembled equals what the encoder, the towers and plain Python give for each key."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import BID, BID_AT, CLICKS, ITEM, SHOWN, TEST_LOGITS, TIME, Artifacts
from contracts.bundle.bundle import load_array, read_manifest, save_array
from contracts.config.config import Config
from contracts.errors import BundleError, DataError, ParityError, SchemaError
from contracts.summaries import summary
from contracts.summaries.train import TrainSummary
from models.evaluation.popularity_order import popularity_order
from serving.assembly.assemble import assemble
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import BID_TIMES, NEVER, TABLES, LoadedBundle
from tests.heard_progress import heard, names


def table(folder: Path) -> dict[str, list[Any]]:
    return pq.read_table(folder).to_pydict()


@pytest.fixture
def items(trained: Artifacts) -> dict[str, list[Any]]:
    return table(trained.online_items)


def test_bids_follow_their_items(loaded: LoadedBundle, items: dict[str, list[Any]]) -> None:
    assert loaded.bids is not None
    np.testing.assert_allclose(loaded.bids[loaded.items.rows(items[ITEM])], items[BID], rtol=1e-6)
    expected = loaded.settings.train.temperature * np.log(loaded.bids)
    np.testing.assert_allclose(loaded.index.vectors[:, loaded.settings.train.tower_dim], expected, rtol=1e-5, atol=1e-6)


def test_filters_follow_their_items(loaded: LoadedBundle, items: dict[str, list[Any]]) -> None:
    rows = loaded.items.rows(items[ITEM])
    for name, value in (("category", "music"), ("brand", 10**12)):
        expected = [found == value for found in items[name]]
        assert loaded.filters[name].passing([str(value)])[rows].tolist() == expected


def test_metrics_reach_the_manifest(bundle_folder: Path) -> None:
    metrics = read_manifest(bundle_folder).metrics
    assert metrics is not None
    assert metrics.index is not None
    assert (metrics.parity.rows, metrics.parity.mismatches) == (64, 0)
    assert metrics.parity.max_logit_difference <= 1e-4
    assert metrics.index.mean == 1.0
    assert (metrics.ranker, metrics.users, metrics.items) == ("dnn", 60, 80)


def test_its_data_end_with_the_last_event_that_was_ingested(market: Any, trained_copy: Artifacts) -> None:
    """Whatever the windows say: a day alone has none, and may be after those of the whole log."""
    def data_until() -> datetime | None:
        return assemble(market.config, trained_copy, trained_copy.out / "build").data_until

    assert data_until() is None
    until = datetime(2026, 1, 3, 12, tzinfo=UTC)
    for days in (2, 1, 0):
        folder = trained_copy.events / f"day={until - timedelta(days):%Y-%m-%d}"
        folder.mkdir(parents=True)
        times = pa.array([until - timedelta(days), until - timedelta(days, hours=1)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({TIME: times}), folder / "part-0.parquet")
    assert data_until() == until


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


@pytest.mark.parametrize("column", ["_item", "category", "_bid", "_bid_at", "_clicks"])
def test_missing_item_column(market: Any, trained_copy: Artifacts, tmp_path: Path, column: str) -> None:
    path = trained_copy.online_items / "part-0.parquet"
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(SchemaError, match=f"no column '{column}'"):
        assemble(market.config, trained_copy, tmp_path / "build")


@pytest.mark.parametrize("bid", [float("inf"), float("nan"), -1.0, 1e39])
def test_a_bid_that_is_no_price_is_refused(market: Any, trained_copy: Artifacts, tmp_path: Path, bid: float) -> None:
    _bid_of_the_first(trained_copy, bid)
    with pytest.raises(DataError, match=r"1 of \d+ items .* mend log\.bid"):
        assemble(market.config, trained_copy, tmp_path / "build")


def test_an_item_without_a_bid_is_for_nothing(market: Any, trained_copy: Artifacts, tmp_path: Path) -> None:
    item = _bid_of_the_first(trained_copy, None)
    assemble(market.config, trained_copy, tmp_path / "build")
    keys = FeatureStore.load(tmp_path / "build" / TABLES, "items")
    assert load_array(tmp_path / "build" / TABLES / "items_bid.npy")[keys.row(item)] == 0


def test_when_each_bid_was_goes_along(market: Any, trained_copy: Artifacts, tmp_path: Path) -> None:
    path = trained_copy.online_items / "part-0.parquet"
    items = pq.read_table(path)
    told = {str(key): 1_000_000 + number for number, key in enumerate(items[ITEM].to_pylist())}
    never = str(items[ITEM][0].as_py())
    told[never] = None  # type: ignore[assignment]
    place = items.schema.get_field_index(BID_AT)
    pq.write_table(items.set_column(place, items.schema.field(BID_AT), [[*told.values()]]), path)
    assemble(market.config, trained_copy, tmp_path / "build")
    keys = FeatureStore.load(tmp_path / "build" / TABLES, "items")
    times = load_array(tmp_path / "build" / TABLES / BID_TIMES)
    assert {key: times[keys.row(key)] for key in told} == told | {never: NEVER}


def _bid_of_the_first(out: Artifacts, bid: float | None) -> str:
    path = out.online_items / "part-0.parquet"
    items = pq.read_table(path)
    bids = [bid, *items[BID].to_pylist()[1:]]
    place = items.schema.get_field_index(BID)
    pq.write_table(items.set_column(place, items.schema.field(BID), [bids]), path)
    return str(items[ITEM][0].as_py())


def test_weights_of_other_settings(market: Any, trained: Artifacts, tmp_path: Path) -> None:
    prerank = {"kind": "towers", "keep": 20, "hidden": [9]}
    changed = Config.model_validate({**market.config.model_dump(), "prerank": prerank})
    with pytest.raises(BundleError, match="other settings"):
        assemble(changed, trained, tmp_path / "build")


def test_a_ranker_that_was_not_trained(market: Any, trained_copy: Artifacts, tmp_path: Path) -> None:
    summary.write(trained_copy.out / "models", TrainSummary(ranker="din"))
    with pytest.raises(BundleError, match="sluice train"):
        assemble(market.config, trained_copy, tmp_path / "build")


def test_a_ranker_other_than_the_trained_one_is_refused(
    market: Any, trained_copy: Artifacts, tmp_path: Path
) -> None:
    path = trained_copy.model("dnn") / TEST_LOGITS
    save_array(path, np.load(path) + 0.001)
    with pytest.raises(ParityError, match="the one that training wrote"):
        assemble(market.config, trained_copy, tmp_path / "build")


def test_popularity_reads_impressions_and_clicks_of_the_online_table(
    loaded: LoadedBundle, items: dict[str, list[Any]]
) -> None:
    rows = loaded.items.rows(items[ITEM])
    shown, clicks = np.zeros(len(rows)), np.zeros(len(rows))
    shown[rows], clicks[rows] = items[SHOWN], items[CLICKS]
    assert loaded.popularity.tolist() == popularity_order(shown, clicks).tolist()


def test_parts_are_named_as_they_are_assembled(market: Any, trained: Artifacts, tmp_path: Path) -> None:
    with heard() as said:
        assemble(market.config, trained, tmp_path / "build")
    assert names(said) == ["encoding", "ranker and parity", "tables of users and items", "pre-ranker", "index",
                           "recall of the index", "channels"]
