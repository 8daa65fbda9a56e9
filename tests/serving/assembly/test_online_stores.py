"""A stored row is what the encoder gives for its key's raw values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ITEM, USER, Artifacts
from contracts.errors import DataError
from contracts.features.encoding import Encoder
from contracts.features.vocabulary import Vocabulary
from serving.assembly import online_stores
from serving.assembly.online_stores import encode_store, recent_rows
from serving.bundle.feature_store import FeatureStore
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


def test_recent_items_are_known_rows_in_order(loaded: LoadedBundle, trained: Artifacts) -> None:
    users = table(trained.online_users)
    for key, recent in zip(users[USER], users["_recent_items"], strict=True):
        rows = loaded.recent[loaded.users.row(key)]
        assert [loaded.items.key(row) for row in rows if row >= 0] == [item for item in recent if item != "gone"]
        assert (np.diff((rows < 0).astype(int)) >= 0).all()


def test_repeated_key(market: Any, tmp_path: Path, trained: Artifacts) -> None:
    users = pq.read_table(trained.online_users)
    pq.write_table(pa.concat_tables([users, users.slice(0, 1)]), tmp_path / "users.parquet")
    with pytest.raises(DataError, match="twice"):
        encode_store(tmp_path / "users.parquet", USER, "user", Encoder(market.spec, market.vocabularies), tmp_path)


def test_a_table_that_was_not_made_names_the_command(market: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sluice features"):
        encode_store(tmp_path / "users", USER, "user", Encoder(market.spec, market.vocabularies), tmp_path)


def test_recent_items_without_a_list_or_a_user_are_none() -> None:
    store = FeatureStore(Vocabulary.of(["a", "b"], "string"), np.zeros((3, 1), np.int32), np.zeros((3, 0), np.float32))
    assert recent_rows(None, 2, store).shape == (2, 0)
    lists = pa.chunked_array([pa.array([["b", "gone", "a"], None, ["gone"]])])
    assert recent_rows(lists, 3, store).tolist() == [[1, 0], [-1, -1], [-1, -1]]


def test_parts_of_any_size_make_the_same_table(market: Any, tmp_path: Path, trained: Artifacts, loaded: LoadedBundle,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_stores, "CHUNK_ROWS", 7)
    encoder = Encoder(market.spec, market.vocabularies)
    store, kept = encode_store(trained.online_items, ITEM, "item", encoder, tmp_path, [ITEM])
    np.testing.assert_array_equal(store.ids, loaded.items.ids)
    np.testing.assert_array_equal(store.dense, loaded.items.dense)
    assert kept.column(ITEM).to_pylist() == store.keys.keys().to_pylist()
