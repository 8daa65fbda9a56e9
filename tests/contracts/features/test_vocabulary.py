"""Vocabularies against their definition: the id of a key is its place among the sorted keys, plus 2."""

from __future__ import annotations

import pickle
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary, read, write

texts = st.text(st.characters(codec="utf-8"), max_size=5)
integers = st.integers(-(2**63), 2**63 - 1)


@given(known=st.sets(texts, max_size=30), asked=st.lists(st.one_of(st.none(), texts), min_size=1, max_size=60))
def test_the_id_of_a_text_is_its_place_among_the_bytes(known, asked):
    asked = [*asked, *known]
    ranked = sorted(text.encode() for text in known)
    expected = [ranked.index(text.encode()) + 2 if text in known else 1 for text in asked]
    stored = Vocabulary.of(known, "string")
    assert stored.look_up(asked, "string").tolist() == expected
    assert stored.look_up_arrow(pa.array(asked, pa.string()), "string").tolist() == expected
    assert [str(stored.key(place)).encode() for place in range(len(stored))] == ranked


@given(known=st.sets(integers, max_size=30), asked=st.lists(st.one_of(st.none(), integers), min_size=1, max_size=30))
def test_the_id_of_an_integer_is_its_place(known, asked):
    stored = Vocabulary.of(sorted(known, reverse=True), "int64")
    expected = [sorted(known).index(key) + 2 if key in known else 1 for key in asked]
    assert stored.look_up(asked, "int64").tolist() == expected
    assert stored.look_up_arrow(pa.array(asked, pa.int64()), "int64").tolist() == expected
    codes = np.array([[0 if key is None else key for key in asked]], dtype=np.int64)
    assert stored.look_up_codes(codes).tolist() == [[2 + sorted(known).index(k) if k in known else 1 for k in codes[0]]]


def test_truth_values_are_found_among_zero_and_one():
    stored = Vocabulary.of([True, None, False, True], "bool")
    assert stored.keys().to_pylist() == [0, 1]
    assert stored.look_up([True, False, None], "bool").tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("value", "key_type"),
    [(1.0, "int64"), (True, "int64"), (1, "bool"), (1, "string"), ("1", "int64"), (b"a", "string")],
)
def test_keys_of_another_type_are_refused(value, key_type):
    stored = Vocabulary.of([], key_type)
    with pytest.raises(DataError, match=f"is a {type(value).__name__}, the vocabulary holds {key_type}"):
        stored.look_up([None, value], key_type)


def test_a_vocabulary_of_another_type_is_refused():
    with pytest.raises(DataError, match="string keys are looked up in a vocabulary that holds int64"):
        Vocabulary.of([1], "int64").look_up(["1"], "string")
    with pytest.raises(DataError, match="string keys are looked up in a vocabulary that holds int64"):
        Vocabulary.of([1], "int64").place("1")
    with pytest.raises(DataError, match="int64 keys are looked up in a vocabulary that holds text"):
        Vocabulary.of(["1"], "string").look_up_codes(np.array([1]))
    with pytest.raises(DataError, match="int64 keys are looked up in a vocabulary that holds text"):
        Vocabulary.of(["1"], "string").look_up_arrow(pa.array([1]), "int64")


@given(known=st.sets(texts, max_size=9), others=st.sets(texts, max_size=9))
def test_two_are_equal_where_their_keys_are(known, others):
    left, right = Vocabulary.of(known, "string"), Vocabulary.of(others, "string")
    assert (left == right) == (known == others)
    assert left == pickle.loads(pickle.dumps(left))
    assert left != Vocabulary.of(range(len(known)), "int64")


@given(known=st.sets(texts, max_size=9), others=st.sets(texts, max_size=9))
def test_places_of_another_vocabularys_keys(known, others):
    ranked = sorted(known, key=str.encode)
    expected = [ranked.index(key) if key in known else -1 for key in sorted(others, key=str.encode)]
    assert Vocabulary.of(known, "string").places_of(Vocabulary.of(others, "string")).tolist() == expected
    assert Vocabulary.of([3, 7], "int64").places_of(Vocabulary.of([7, 8], "int64")).tolist() == [1, -1]
    assert Vocabulary.of([3, 7], "int64").places_of(Vocabulary.of(["3"], "string")).tolist() == [-1]


STORED = {"words": Vocabulary.of(["", "a", "é", "a\0", "long" * 99], "string"), "none": Vocabulary.of([], "string"),
          "whole": Vocabulary.of([-5, 2**63 - 1], "int64"), "nothing": Vocabulary.of([], "int64"),
          "dotted.npy": Vocabulary.of(["x"], "string")}


def test_vocabularies_survive_their_files(tmp_path):
    for name, keys in STORED.items():
        vocabulary.write(tmp_path, name, keys)
    assert sorted(vocabulary.read_all(tmp_path)) == sorted(STORED)
    for name, keys in STORED.items():
        found = vocabulary.read(tmp_path, name)
        assert found == keys == vocabulary.read_all(tmp_path)[name]
        assert found.look_up(keys.keys().to_pylist(), "string" if keys.holds_text else "int64").tolist() == list(
            range(2, len(keys) + 2))


def test_one_long_key_costs_its_own_length_and_reading_costs_nothing(tmp_path):
    keys = [f"{number:06d}" for number in range(50_000)]
    vocabulary.write(tmp_path, "v", Vocabulary.of([*keys, "x" * 500], "string"))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 50_000 * (6 + 8 + 8 + 4) + 10_000
    tracemalloc.start()
    found = vocabulary.read(tmp_path, "v")
    assert found.look_up_arrow(pa.array(["000007", "x" * 500, "000007-and-more"]), "string").tolist() == [9, 50_002, 1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 10


def test_keys_of_one_width_as_bundles_once_had_are_read(tmp_path):
    (tmp_path / vocabulary.FOLDER).mkdir()
    np.save(tmp_path / vocabulary.FOLDER / "v.npy", np.array([b"a", "é".encode()]))
    assert vocabulary.read_all(tmp_path) == {"v": Vocabulary.of(["a", "é"], "string")}


def test_another_type_takes_the_place(tmp_path):
    for keys in (STORED["words"], STORED["whole"], STORED["words"]):
        vocabulary.write(tmp_path, "v", keys)
        assert vocabulary.read_all(tmp_path) == {"v": keys}


def test_damaged_files_are_refused_by_name(tmp_path):
    vocabulary.write(tmp_path, "v", Vocabulary.of(["a", "b"], "string"))
    folder = tmp_path / vocabulary.FOLDER / "v"
    np.save(folder / "ranks.npy", np.zeros(3, dtype=np.int32))
    with pytest.raises(DataError, match="do not fit together"):
        vocabulary.read(tmp_path, "v")
    (folder / "blob.npy").unlink()
    with pytest.raises(DataError, match=r"v cannot be read .*blob\.npy.*run `sluice features` again"):
        vocabulary.read_all(tmp_path)
    with pytest.raises(DataError, match=r"other\.npy cannot be read"):
        vocabulary.read(tmp_path, "other")


def test_a_mapped_vocabulary_travels_as_its_path(tmp_path, monkeypatch):
    texts = [f"key {n}" for n in range(9999)]
    kept = {"texts": Vocabulary.of(texts, "string"), "codes": Vocabulary.of([3, 1], "int64")}
    for name, keys in kept.items():
        write(tmp_path, name, keys)
    monkeypatch.chdir(tmp_path)
    sent = {name: pickle.dumps(read(Path(), name)) for name in kept}
    monkeypatch.chdir(tmp_path.parent)
    assert {name: pickle.loads(data) for name, data in sent.items()} == kept
    assert max(map(len, sent.values())) < 1000
    assert pickle.loads(pickle.dumps(kept["codes"])) == kept["codes"]
    shutil.rmtree(tmp_path / "vocabularies")
    with pytest.raises(DataError, match=r"texts is not there .* every executor"):
        pickle.loads(sent["texts"])


def test_all_are_copied_and_a_table_of_numbers_has_none(tmp_path):
    numbers, keyed, copied = (tmp_path / name for name in ("numbers", "keyed", "copied"))
    write(keyed, "codes", Vocabulary.of([3, 1], "int64"))
    for source in (numbers, keyed):
        vocabulary.copy_all(source, copied)
    assert vocabulary.read_all(copied) == vocabulary.read_all(keyed)
