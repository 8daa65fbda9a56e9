"""A name for each private row that stays the same from day to day: its table and the value it stands for, hashed.

Ids are ranks in a vocabulary and move when it grows; what a client has answered about a row must not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID
from contracts.features.vocabulary import Vocabulary
from federated.clients.row_space import RowSpace

NAME_BYTES = 8


def row_names(space: RowSpace, vocabularies: Mapping[str, Vocabulary]) -> np.ndarray:
    """uint64 per private place, in order. Rows of a table without a vocabulary are named by their id, which hashing
    gave them. Raises DataError on a vocabulary of another size than its table: ids are no names."""
    names = [_hashed(table, _values(table, stop - start, vocabularies))
             for table, (start, stop) in zip(space.private_tables, space.private_ranges(), strict=True)]
    return np.concatenate([np.empty(0, dtype=np.uint64), *names])


def _values(table: str, rows: int, vocabularies: Mapping[str, Vocabulary]) -> list[bytes]:
    keys = vocabularies.get(table)
    if keys is None:
        return [b"#%d" % number for number in range(FIRST_ID, FIRST_ID + rows)]
    if len(keys) != rows:
        raise DataError(f"table {table!r} has {rows} rows of its own and its vocabulary {len(keys)} values: public "
                        "files of two preparations; run `sluice federate` anew, and hand out the whole folder public/")
    return [str(key).encode() for key in keys.keys().to_pylist()]


def _hashed(table: str, values: list[bytes]) -> np.ndarray:
    start = hashlib.blake2b(table.encode() + b"\0", digest_size=NAME_BYTES)
    raw = bytearray()
    for value in values:
        name = start.copy()
        name.update(value)
        raw += name.digest()
    return np.frombuffer(bytes(raw), dtype="<u8").astype(np.uint64)
