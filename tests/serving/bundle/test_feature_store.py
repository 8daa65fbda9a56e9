"""Look-ups equal a dictionary's, unknown keys find the default row, and the files are mapped, not copied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.config.section import KeyType
from contracts.errors import BundleError, DataError
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FIRST_ID, UNKNOWN, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FEW, FeatureStore, OwnKeys, sort_order

KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


def table(keys: list[str]) -> FeatureStore:
    """ids and dense of a row hold the row's number."""
    ordered, _ = sort_order(pa.array(keys, pa.string()), "users")
    numbers = np.arange(len(keys) + 1)
    ids, dense = np.repeat(numbers[:, None], 3, axis=1), numbers[:, None]
    return FeatureStore(ordered, ids.astype(np.int32), dense.astype(np.float32))


@given(st.lists(KEYS, unique=True, max_size=30), st.lists(KEYS, max_size=10))
def test_rows_equal_a_dictionary(keys: list[str], asked: list[str]) -> None:
    found = table(keys)
    reference = {key: row for row, key in enumerate(sorted(keys, key=str.encode))}
    wanted = [*asked, *keys]
    assert found.rows(wanted).tolist() == [reference.get(key, -1) for key in wanted]
    assert [found.row(key) for key in wanted] == found.rows(wanted).tolist()
    assert [found.key(row) for row in range(len(found))] == list(reference)


def test_unknown_key_finds_the_last_row() -> None:
    found = table(["a", "b"])
    assert found.ids[found.row("c")].tolist() == [2, 2, 2]


@pytest.mark.parametrize("key", ["a\0", "\0", "a\0b"])
def test_a_nul_does_not_pass_for_its_stem(key: str) -> None:
    assert table(["", "a"]).row(key) == -1


def test_empty_table_knows_nobody() -> None:
    assert table([]).rows(["a", "b"]).tolist() == [-1, -1]
    assert table([]).rows([]).tolist() == []


def test_order_sorts() -> None:
    keys = ["é", "b", "a", "zz"]
    ordered, order = sort_order(pa.array(keys, pa.string()), "users")
    assert ordered.keys().to_pylist() == [keys[n] for n in order] == ["a", "b", "zz", "é"]


@pytest.mark.parametrize(("keys", "message"), [(["a", "b", "a"], "'a' twice"), (["a", None], "without a key")])
def test_bad_keys_are_refused(keys: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        sort_order(pa.array(keys, pa.string()), "items")


def test_saved_table_is_mapped(tmp_path: Path) -> None:
    table(["b", "a"]).save(tmp_path, "users")
    found = FeatureStore.load(tmp_path, "users")
    for part in (found.ids, found.dense):
        assert isinstance(part, np.memmap)
        assert not part.flags.writeable
    assert found.rows(["a", "b"]).tolist() == [0, 1]


def test_keys_of_one_width_of_an_earlier_bundle_are_read(tmp_path: Path) -> None:
    table(["b", "a"]).save(tmp_path, "users")
    shutil.rmtree(tmp_path / "vocabularies")
    with pytest.raises(BundleError, match=r"keys of the bundle's table 'users'.*assemble the bundle again"):
        FeatureStore.load(tmp_path, "users")
    np.save(tmp_path / "users_keys.npy", np.array([b"a", b"b"]))
    assert FeatureStore.load(tmp_path, "users").rows(["b", "c", "a"]).tolist() == [1, -1, 0]


def test_missing_part_is_refused(tmp_path: Path) -> None:
    table(["a"]).save(tmp_path, "users")
    (tmp_path / "users_ids.npy").unlink()
    with pytest.raises(BundleError, match=r"users_ids\.npy"):
        FeatureStore.load(tmp_path, "users")


def test_parts_of_other_lengths_are_refused(tmp_path: Path) -> None:
    table(["a"]).save(tmp_path, "users")
    np.save(tmp_path / "users_dense.npy", np.zeros((5, 1), dtype=np.float32))
    with pytest.raises(BundleError, match="1 keys, 2 rows of ids and 5 dense"):
        FeatureStore.load(tmp_path, "users")


def test_keys_of_rows_in_their_order() -> None:
    found = table(["b", "a", "c"])
    assert found.keys_of(np.array([2, 0, 0])) == ["c", "a", "a"]
    assert found.keys_of(np.array([2, 0, 0] * FEW)) == ["c", "a", "a"] * FEW
    assert found.keys_of(np.empty(0, dtype=np.int64)) == []


def own_keys(key_type: KeyType, known: list[Any], keys: list[str], ids: list[int]) -> OwnKeys:
    """Of items with these `keys` and `ids`, whose one field has a vocabulary of `known`."""
    words = Vocabulary.of(known, key_type)
    field = FeatureField(name="sku", kind="categorical", side="item", key_type=key_type, vocabulary="sku",
                         size=len(words) + FIRST_ID)
    spec = FeatureSpec(has_bid=False, fields=(field,))
    column = np.array([*ids, UNKNOWN], dtype=np.int32)[:, None]
    items = FeatureStore(Vocabulary.of(keys, "string"), column, np.zeros((len(column), 0), dtype=np.float32))
    return OwnKeys(items, spec, Encoder(spec, {"sku": words}))


@pytest.mark.parametrize("long", [str(2**63), str(-(2**63) - 1), "9" * 5000])
def test_a_key_beyond_64_bits_is_unknown(long: str) -> None:
    """Of items that the table lacks, and of its own."""
    for keys, ids in ((["17", "5"], [3, 2]), (["17", long], [3, UNKNOWN] if long > "17" else [UNKNOWN, 3])):
        named = own_keys("int64", [5, 17], keys, ids)
        assert named("17", {}) == {"sku": 17}
        assert named(long, {}) == named("new", {}) == {}


def test_a_field_of_booleans_holds_nobody_s_keys() -> None:
    for keys in (["0", "1"], ["17", "a"], ["false", "true"]):
        assert own_keys("bool", [False, True], keys, [2, 3])("1", {}) == {}
