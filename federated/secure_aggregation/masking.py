"""Masks over one client's upload, and the sum of many uploads.

An upload is a flat vector of words: `common` words that every client has, then one group of `width` words for each of
the client's rows (sorted places in a space that all know). Two clients mask each other on the common words and on the
rows both have:

    upload = words + stream(self seed) + sum over peers of sign * stream(pair key, common ‖ rows of both)

with sign +1 for the smaller of the two numbers. With the same rows everywhere this is one contiguous vector (union
mode); with no rows it masks the union's membership vector.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from contracts.errors import ProtocolError
from federated.secure_aggregation.mask_stream import words

NO_ROWS: np.ndarray = np.empty(0, dtype=np.int64)


def _no_rows() -> np.ndarray:
    return NO_ROWS


@dataclass(frozen=True)
class Layout:
    """`places` [R] int64, sorted and unique: where the client's rows lie in the space of `space` rows."""

    dtype: type[np.unsignedinteger]
    common: int
    width: int = 0
    space: int = 0
    places: np.ndarray = field(default_factory=_no_rows)

    @property
    def size(self) -> int:
        """Words of an upload."""
        return self.common + len(self.places) * self.width

    def with_rows(self, places: np.ndarray) -> Layout:
        """The same for other rows."""
        return Layout(self.dtype, self.common, self.width, self.space, places)


@dataclass(frozen=True)
class PairMask:
    """`rows` index the client's own places (not the space); the two ends see the same rows of the space in order."""

    key: bytes
    sign: int
    rows: np.ndarray = field(default_factory=_no_rows)


def masked(layout: Layout, values: np.ndarray, self_key: bytes | None, pairs: Iterable[PairMask]) -> np.ndarray:
    """The upload of one client. Without a self key and pairs it is the plain words."""
    if values.size != layout.size or values.dtype != layout.dtype:
        raise ProtocolError(f"an upload has {values.size} words of {values.dtype}, its layout says {layout.size} of "
                            f"{np.dtype(layout.dtype)}")
    upload = values.copy()
    if self_key is not None:
        upload += words(self_key, layout.size, layout.dtype)
    for pair in pairs:
        add_pair(layout, upload, pair)
    return upload


def add_pair(layout: Layout, upload: np.ndarray, pair: PairMask) -> None:
    """Adds sign * stream of one pair in place."""
    mask = words(pair.key, layout.common + len(pair.rows) * layout.width, layout.dtype)
    apply = np.add if pair.sign > 0 else np.subtract
    head = upload[: layout.common]
    apply(head, mask[: layout.common], out=head)
    if not len(pair.rows):
        return
    body, tail = upload[layout.common :].reshape(-1, layout.width), mask[layout.common :].reshape(-1, layout.width)
    if len(pair.rows) == len(body):
        apply(body, tail, out=body)
    else:
        body[pair.rows] = apply(body[pair.rows], tail)


class Total:
    """The running sum of uploads: `common` [C] and `rows` [space, width]."""

    def __init__(self, layout: Layout) -> None:
        self.common = np.zeros(layout.common, dtype=layout.dtype)
        self.rows = np.zeros((layout.space, layout.width), dtype=layout.dtype)

    def add(self, layout: Layout, upload: np.ndarray) -> None:
        """Words of `layout.size`, modulo the size of a word."""
        self.common += upload[: layout.common]
        if len(layout.places) == len(self.rows):
            self.rows += upload[layout.common :].reshape(self.rows.shape)
        elif len(layout.places):
            self.rows[layout.places] += upload[layout.common :].reshape(-1, layout.width)

    def subtract(self, layout: Layout, mask: np.ndarray) -> None:
        """The inverse of `add`."""
        self.add(layout, np.subtract(0, mask, dtype=mask.dtype))
