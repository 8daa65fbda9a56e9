"""Named arrays as one of Flower's records, and back: what came over the wire is measured before it is decoded.

A record's array is a .npy file. Of these the plainest alone is read (numbers, C order, the header that numpy writes),
and only where the bytes that follow are as many as the header declares: no archive, no pickle, no allocation that the
sender did not send.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

import numpy as np
from flwr.app import Array, ArrayRecord, RecordDict

from contracts.errors import ProtocolError
from federated.protocol.messages import Message

ARRAYS = "arrays"
MOST_ARRAYS, MOST_AXES = 64, 4
MAGIC, HEADER_BYTES = b"\x93NUMPY\x01\x00", 4096
HEADER = re.compile(
    rb"\{'descr': '([<|][uif][1248]|\|b1)', 'fortran_order': False, 'shape': "
    rb"\((|\d{1,18},|\d{1,18}(?:, \d{1,18}){1,3})\), \} *\n")


def to_records(message: Mapping[str, np.ndarray]) -> RecordDict:
    """Named arrays as one ArrayRecord."""
    arrays = {name: Array(np.asarray(value, order="C")) for name, value in message.items()}
    return RecordDict({ARRAYS: ArrayRecord(arrays)})


def from_records(records: RecordDict, name: str = ARRAYS) -> Message:
    """Raises ProtocolError when there are no arrays, or more than a message has, or one does not decode."""
    if name not in records.array_records:
        raise ProtocolError(f"a message has no record {name!r}; it has {sorted(records)[:MOST_ARRAYS]}")
    arrays = records.array_records[name]
    if len(arrays) > MOST_ARRAYS:
        raise ProtocolError(f"a message has {len(arrays)} arrays, {MOST_ARRAYS} are the most; refused")
    return {key: decoded(array.data) for key, array in arrays.items()}


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
