"""What clients may send as an array: .npy files of numbers that are all there, nothing that costs more than that."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from contracts.errors import ProtocolError
from federated.flower.array_records import (
    ARRAYS,
    MAGIC,
    MOST_ARRAYS,
    PACKED,
    SMALL,
    decoded,
    files_in,
    from_records,
    packed_in,
    records_of,
    to_records,
)


def file_of(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def headed(text, body=b""):
    return MAGIC + len(text).to_bytes(2, "little") + text + body


def of_shape(shape):
    return headed(b"{'descr': '<u4', 'fortran_order': False, 'shape': %s, }\n" % shape, bytes(64))


def archive():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.zeros(3))
    return buffer.getvalue()


def broken_archive():
    return b"PK\x03\x04" + bytes(40)


def empty_archive():
    buffer = io.BytesIO()
    zipfile.ZipFile(buffer, "w").close()
    return buffer.getvalue()


@pytest.mark.parametrize("array", [
    np.array(5), np.zeros(0, np.uint8), np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6).reshape(2, 3).T,
    np.ones(3, bool), np.zeros((0, 16), np.uint8), np.zeros((1, 2, 3), np.uint16)])
def test_arrays_come_back_as_they_were_sent(array):
    found = from_records(to_records({"a": array}))["a"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found == array).all()


@pytest.mark.parametrize("data", [
    b"", b"nonsense", MAGIC, archive(), broken_archive(), empty_archive(), of_shape(b"(70368744177664,)"),
    of_shape(b"(%d, %d)" % (2**62, 2**62)), of_shape(b"(-1,)"), of_shape(b"(15,)"), of_shape(b"(17,)"),
    file_of(np.array([{}])), file_of(np.array(["text"])), headed(b"(" * 4000), headed(b"{'descr': '<f1'}"),
    headed(b"{'descr': '<i1', 'fortran_order': False, 'shape': (3,), }" + b" " * 5000 + b"\n", bytes(3)),
    headed(b"{'descr': '|f4', 'fortran_order': False, 'shape': (), }\n", b"123"),
], ids=lambda data: str(data[:12]))
def test_what_is_no_array_of_numbers_is_refused_before_anything_is_allocated(data):
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="does not decode"):
        decoded(data)
    assert tracemalloc.get_traced_memory()[1] < 200_000
    tracemalloc.stop()


def test_records_that_hold_no_arrays_or_too_many_are_refused():
    with pytest.raises(ProtocolError, match="no record"):
        from_records(RecordDict())
    unpacked = Array("float32", (3,), "numpy.ndarray", b"nonsense")
    others: list[ArrayRecord | ConfigRecord | MetricRecord] = [
        ArrayRecord({"a": unpacked}), ConfigRecord({"a": b""}), ConfigRecord({PACKED: "text"}),
        ConfigRecord({PACKED: [b"", b""]}), MetricRecord({PACKED: 1}), ConfigRecord({PACKED: b"", "a": b""})]
    for record in others:
        with pytest.raises(ProtocolError, match="no record 'arrays' of one value"):
            from_records(RecordDict({"arrays": record}))
    with pytest.raises(ProtocolError, match="does not decode"):
        from_records(records_of({"a": b"nonsense"}))
    many = to_records({f"a{number}": np.zeros(1) for number in range(MOST_ARRAYS + 1)})
    with pytest.raises(ProtocolError, match="64 are the most"):
        from_records(many)


@pytest.mark.parametrize(("words", "parts"), [(3, 2), (SMALL // 8, 4)])
def test_a_message_is_one_value_whatever_it_holds_and_a_small_one_has_no_parts(words, parts):
    """Flower pushes and pulls each part by itself, from server to node, to client, and back."""
    records = to_records({"a": np.zeros(words), "b": np.array(1)})
    assert list(records[ARRAYS]) == [PACKED]
    assert sorted(files_in(records)) == ["a", "b"]
    assert (from_records(records)["a"] == np.zeros(words)).all()
    assert len(get_all_nested_objects(records)) == parts
    assert from_records(to_records({})) == {}


def test_a_message_that_is_cut_anywhere_is_refused_or_shorter():
    whole = packed_in(records_of({"a": file_of(np.zeros(2)), "bc": file_of(np.array(3))}))
    first = len(packed_in(records_of({"a": file_of(np.zeros(2))})))
    for length in range(len(whole)):
        records = RecordDict({ARRAYS: ArrayRecord({PACKED: Array("", (), "", whole[:length])})})
        if length in (0, first):
            assert len(from_records(records)) == bool(length)
        else:
            with pytest.raises(ProtocolError, match="within an array"):
                from_records(records)


def test_ten_thousand_mutations_are_arrays_or_refused():
    generator = np.random.default_rng(7)
    sound = [file_of(np.arange(12, dtype=np.uint8)), file_of(np.zeros((3, 2), np.float32)), archive()]
    read = 0
    for number in range(10_000):
        data = bytearray(sound[number % 3])
        for _ in range(generator.integers(1, 6)):
            data[generator.integers(0, len(data))] = generator.integers(0, 256)
        cut = len(data) - int(generator.integers(0, 9)) * int(generator.integers(0, 2))
        try:
            read += isinstance(decoded(bytes(data[:cut])), np.ndarray)
        except ProtocolError:
            continue
    assert 0 < read < 10_000
