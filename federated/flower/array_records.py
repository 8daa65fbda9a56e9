"""Named arrays as one of Flower's records, and back: what came over the wire is measured before it is decoded.

To Flower an array is an object with parts of its own, each of which is pushed and pulled by itself, five times from one
end to the other. So a message is one value, whose bytes are all of the message's: up to SMALL of them in a record that
has no parts, more in one array, which goes in parts of some MiB.

    for each array: bytes of its name (u16), its name, bytes of its file (u32), its file

A file is a .npy file. Of these the plainest alone is read (numbers, C order, the header that numpy writes), and only
where the bytes that follow are as many as the header declares: no archive, no pickle, no allocation that the sender did
not send.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from math import prod
from struct import Struct

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from contracts.errors import ProtocolError
from federated.protocol.messages import Message

ARRAYS, PACKED = "arrays", "packed"
NAME, FILE = Struct("<H"), Struct("<I")
MOST_ARRAYS = 64
SMALL = 1 << 20
MAGIC, HEADER_BYTES = b"\x93NUMPY\x01\x00", 4096
HEADER = re.compile(
    rb"\{'descr': '([<|][uif][1248]|\|b1)', 'fortran_order': False, 'shape': "
    rb"\((|\d{1,18},|\d{1,18}(?:, \d{1,18}){1,3})\), \} *\n")


def to_records(message: Mapping[str, np.ndarray]) -> RecordDict:
    """Named arrays as one record."""
    return records_of({name: _file(value) for name, value in message.items()})


def records_of(files: Mapping[str, bytes]) -> RecordDict:
    """Named files as one record."""
    return RecordDict({ARRAYS: record_of(b"".join(
        NAME.pack(len(name.encode())) + name.encode() + FILE.pack(len(file)) + file for name, file in files.items()))})


def record_of(packed: bytes) -> ArrayRecord | ConfigRecord:
    """A message's bytes as one value."""
    if len(packed) <= SMALL:
        return ConfigRecord({PACKED: packed})
    return ArrayRecord({PACKED: Array("uint8", (len(packed),), "numpy.ndarray", packed)})


def packed_in(records: RecordDict, name: str = ARRAYS) -> bytes:
    """The inverse of `record_of`. Raises ProtocolError on anything else."""
    record = records.get(name)
    if isinstance(record, ConfigRecord | ArrayRecord) and list(record) == [PACKED]:
        value = record[PACKED]
        if isinstance(value, bytes):
            return value
        if isinstance(value, Array):
            return value.data
    raise ProtocolError(f"a message has no record {name!r} of one value; it has {sorted(records)[:MOST_ARRAYS]}")


def from_records(records: RecordDict, name: str = ARRAYS) -> Message:
    """Raises ProtocolError when there are no arrays, or more than a message has, or one does not decode."""
    return {key: decoded(file) for key, file in files_in(records, name).items()}


def files_in(records: RecordDict, name: str = ARRAYS) -> dict[str, bytes]:
    """The inverse of `records_of`. Raises ProtocolError on anything else."""
    data, files, at = packed_in(records, name), dict[str, bytes](), 0
    while at < len(data):
        if len(files) == MOST_ARRAYS:
            raise ProtocolError(f"a message has more than {MOST_ARRAYS} arrays; {MOST_ARRAYS} are the most; refused")
        raw, at = _sized(data, at, NAME)
        file, at = _sized(data, at, FILE)
        files[raw.decode(errors="replace")] = file
    return files


def _sized(data: bytes, at: int, size: Struct) -> tuple[bytes, int]:
    """The bytes after their number at this place, and where the next begin."""
    start = at + size.size
    end = start + size.unpack_from(data, at)[0] if start <= len(data) else len(data) + 1
    if end > len(data):
        raise ProtocolError(f"a message does not decode: it ends after {len(data)} bytes, within an array")
    return data[start:end], end


def _file(value: np.ndarray) -> bytes:
    written = BytesIO()
    np.save(written, np.asarray(value, order="C"), allow_pickle=False)
    return written.getvalue()


def decoded(data: bytes) -> np.ndarray:
    """The array of a .npy file. Raises ProtocolError on anything but numbers that are all there."""
    start = len(MAGIC) + 2
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    header = HEADER.fullmatch(data[start : start + length]) if length <= HEADER_BYTES else None
    if not data.startswith(MAGIC) or header is None:
        raise ProtocolError("an array of a message does not decode: it is no .npy file of numbers in C order")
    try:
        dtype = np.dtype(header[1].decode())
    except TypeError:
        raise ProtocolError(f"an array of a message does not decode: {header[1]!r} is no type of numbers") from None
    shape = tuple(int(axis) for axis in header[2].replace(b",", b" ").split())
    body = len(data) - start - length
    if prod(shape) * dtype.itemsize != body:
        raise ProtocolError(f"an array of a message does not decode: {body} bytes follow a header of {shape} {dtype}")
    return np.frombuffer(data, dtype, offset=start + length).reshape(shape).copy()
