"""Which rows at least one client of the round holds, without who or how many.

Each client's membership vector has non-zero random words where it holds something; the vectors are summed under masks,
and a non-zero sum means that somebody held it. A single holder is never lost, because draws are never zero; the words
of two or more cancel with probability 2^-32, which costs a row one round. Two codes, the smaller is taken:

    direct  one word per row
    bloom   one word per cell of a Bloom filter, and one per partition of the rows so that the server need not try
            them all (false positives are rows that nobody holds: they cost bytes and no correctness)

With `counted` each holder adds one instead: the server then learns how many hold a row, and can leave out of the union
every row that fewer than t hold, whose update would uncover its holder.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from functools import cached_property

import numpy as np

WORD = np.uint32
FALSE_POSITIVES = 0.01
PARTITION_ROWS = 256
BASE, DIGITS = 16, 5  # numbers below 16^5 of up to 286 million clients are added in words of 32 bits, digit by digit


@dataclass(frozen=True)
class DirectCode:
    """One word per row."""

    rows: int

    @property
    def size(self) -> int:
        """Words of a membership vector."""
        return self.rows

    def cells(self, held: np.ndarray) -> np.ndarray:
        """Where the vector of a client that holds these rows is not zero."""
        return held

    def decode(self, total: np.ndarray, least: int = 1) -> np.ndarray:
        """Sorted rows held by somebody (or, where words count, by `least`)."""
        return np.flatnonzero(total >= least)


@dataclass(frozen=True)
class BloomCode:
    """A filter for up to `expected` rows of `rows`, with a partition vector at its end."""

    rows: int
    expected: int

    @property
    def filter_size(self) -> int:
        """m = -n ln(p) / ln(2)^2 cells (Bloom, 1970)."""
        return math.ceil(-self.expected * math.log(FALSE_POSITIVES) / math.log(2) ** 2)

    @property
    def partitions(self) -> int:
        """Stretches of PARTITION_ROWS rows."""
        return -(-self.rows // PARTITION_ROWS)

    @property
    def size(self) -> int:
        """Words of a membership vector."""
        return self.filter_size + self.partitions

    @cached_property
    def hashes(self) -> int:
        """k = m / n ln(2) cells a row."""
        return max(1, round(self.filter_size / self.expected * math.log(2)))

    def _positions(self, rows: np.ndarray) -> np.ndarray:
        """[R, hashes] cells of the filter; public, so an ordinary hash serves."""
        raw = b"".join(
            hashlib.blake2b(int(row).to_bytes(8, "little"), digest_size=8 * min(self.hashes, 8)).digest()
            for row in rows
        )
        return (np.frombuffer(raw, dtype="<u8").reshape(len(rows), -1) % self.filter_size).astype(np.int64)

    def cells(self, held: np.ndarray) -> np.ndarray:
        """Sorted: the filter's cells of these rows, and their partitions."""
        return np.unique(np.concatenate([
            self._positions(held).ravel(), self.filter_size + held // PARTITION_ROWS,
        ]))

    def decode(self, total: np.ndarray, least: int = 1) -> np.ndarray:
        """Sorted rows all of whose cells somebody (or `least`) set: those held, and a few that nobody holds."""
        present = np.flatnonzero(total[self.filter_size :] >= least)
        tried = (present[:, None] * PARTITION_ROWS + np.arange(PARTITION_ROWS)).ravel()
        tried = tried[tried < self.rows]
        return tried[(total[self._positions(tried)] >= least).all(axis=1)] if len(tried) else tried


Code = DirectCode | BloomCode


def smallest_code(rows: int, expected: int) -> Code:
    """Direct, unless a Bloom filter for the expected union is smaller."""
    codes: list[Code] = [DirectCode(rows), BloomCode(rows, max(expected, 1))]
    return min(codes, key=lambda code: code.size)


def membership(code: Code, held: np.ndarray, counted: bool = False) -> np.ndarray:
    """One client's words before masking."""
    vector = np.zeros(code.size, dtype=WORD)
    cells = code.cells(held)
    vector[cells] = 1 if counted else nonzero_words(len(cells))
    return vector


def nonzero_words(count: int) -> np.ndarray:
    """Uniform over 1 .. 2^32 - 1, from the operating system."""
    drawn = np.frombuffer(secrets.token_bytes(WORD().itemsize * count), dtype=WORD).copy()
    while not drawn.all():
        zero = np.flatnonzero(drawn == 0)
        drawn[zero] = np.frombuffer(secrets.token_bytes(WORD().itemsize * len(zero)), dtype=WORD)
    return drawn


def to_digits(number: int) -> np.ndarray:
    """Words [DIGITS], the least first."""
    return np.array([number // BASE**place % BASE for place in range(DIGITS)], dtype=WORD)


def from_digits(sums: np.ndarray) -> int:
    """The sum of numbers whose digits were summed."""
    return sum(int(digit) * BASE**place for place, digit in enumerate(sums))
