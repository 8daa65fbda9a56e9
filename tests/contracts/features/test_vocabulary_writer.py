"""A vocabulary that is written in parts is the one that is written at once."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features import vocabulary, vocabulary_writer
from contracts.features.vocabulary import Vocabulary
from contracts.features.vocabulary_writer import VocabularyWriter


@given(keys=st.sets(st.text(max_size=9), max_size=40), cuts=st.lists(st.integers(0, 40)), bits=st.integers(0, 22))
def test_parts_make_the_whole(keys, cuts, bits, tmp_path_factory):
    folder, ordered = tmp_path_factory.mktemp("v"), sorted(keys, key=str.encode)
    bounds = [0, *sorted(cuts), len(ordered)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary_writer, "PART_BITS", bits)
        patch.setattr(vocabulary_writer, "CHUNK", 3)
        with VocabularyWriter(folder, "v", "string") as writer:
            for start, stop in itertools.pairwise(bounds):
                writer.add(pa.array(ordered[start:stop], pa.string()))
    found, expected = vocabulary.read(folder, "v"), Vocabulary.of(keys, "string")
    assert (found, writer.keys) == (expected, len(keys))
    assert found.look_up_arrow(pa.array(ordered, pa.string()), "string").tolist() == list(range(2, len(keys) + 2))


def test_whole_numbers_and_chunks(tmp_path):
    with VocabularyWriter(tmp_path, "v", "int64") as writer:
        writer.add(pa.chunked_array([[-3, 0], [], [2**62]]))
    assert vocabulary.read(tmp_path, "v") == Vocabulary.of([2**62, 0, -3], "int64")


@pytest.mark.parametrize(("parts", "message"), [
    ([["b", "a"]], "'a' follows 'b'"), ([["a", "b"], ["b"]], "'b' follows 'b'"), ([["a", "a"]], "one key twice"),
    ([["a", None]], "a null"), ([["é"], ["z"]], "'z' follows 'é'")])
def test_keys_out_of_order_are_refused_and_leave_what_was_there(tmp_path, parts, message):
    vocabulary.write(tmp_path, "v", Vocabulary.of(["kept"], "string"))
    with pytest.raises(DataError, match=message), VocabularyWriter(tmp_path, "v", "string") as writer:
        writer.add(pa.chunked_array(parts))
    assert vocabulary.read_all(tmp_path) == {"v": Vocabulary.of(["kept"], "string")}


def test_keys_of_another_type_are_refused(tmp_path):
    with pytest.raises(DataError, match="the vocabulary holds string keys"), \
            VocabularyWriter(tmp_path, "v", "string") as writer:
        writer.add(pa.array([1]))


def test_memory_does_not_grow_with_the_vocabulary(tmp_path, monkeypatch):
    """300 thousand texts in parts of 5 thousand, hashes sorted 8 thousand at a time: under a tenth of the files."""
    monkeypatch.setattr(vocabulary_writer, "PART_BITS", 13)
    monkeypatch.setattr(vocabulary_writer, "CHUNK", 5000)
    tracemalloc.start()
    with VocabularyWriter(tmp_path, "v", "string") as writer:
        for start in range(0, 300_000, 5000):
            writer.add(pa.array([f"{number:020d}" for number in range(start, start + 5000)]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert peak < size / 4
    assert np.load(tmp_path / "vocabularies" / "v" / "hashes.npy", mmap_mode="r").shape == (300_000,)
