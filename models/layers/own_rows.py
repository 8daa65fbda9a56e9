"""Which rows of an embedding table this process builds: all, or inside `dealt` those that are its own among several.

Rows are dealt as models/distributed/world.py says. Vectors are drawn in pieces, in the order in which one draw of the
whole table has them: each row starts as it would in one process, and no process ever holds more than its own rows and a
piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from contracts.errors import ConfigError

PIECE = 1 << 16  # rows drawn at once; any number of 16 and more gives the same vectors
MOST_ROWS = 2**31 - 1  # that int32 names
WHOLE = slice(0, None, 1)
_own: ContextVar[slice] = ContextVar("own", default=WHOLE)
_undrawn: ContextVar[bool] = ContextVar("undrawn", default=False)


@contextmanager
def dealt(rank: int, size: int) -> Iterator[None]:
    """Tables built inside hold rows `rank`, `rank` + `size`, ... alone."""
    token = _own.set(slice(rank, None, size))
    try:
        yield
    finally:
        _own.reset(token)


@contextmanager
def undrawn() -> Iterator[None]:
    """Tables built inside hold nothing, in no memory: their weights come from a file."""
    token = _undrawn.set(True)
    try:
        yield
    finally:
        _undrawn.reset(token)


def own_rows() -> slice:
    """Of a table that is built now."""
    return _own.get()


def drawn(rows: int, dim: int, deviation: float) -> Tensor:
    """The own rows of a normal draw [rows, dim] from torch's global generator, which moves as if all were drawn at
    once. Raises ConfigError for more rows than int32 can name."""
    if rows > MOST_ROWS:
        raise ConfigError(f"an embedding table of {rows} rows; int32 ids name {MOST_ROWS} at most: give the largest "
                          "vocabularies a higher min_count")
    own = own_rows()
    table = torch.empty(len(range(rows)[own]), dim)
    if _undrawn.get():
        return table
    if own == WHOLE:
        return table.normal_(0.0, deviation)
    ends = [*range(PIECE, rows - PIECE + 1, PIECE), rows]  # the last piece has the rest as well: none is a few numbers
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        first = start + (own.start - start) % own.step
        mine = torch.empty(end - start, dim).normal_(0.0, deviation)[first - start :: own.step]
        table[first // own.step :][: len(mine)] = mine
    return table


@torch.no_grad()
def put(weight: nn.Parameter, own: slice, first: int, values: Tensor) -> None:
    """Gives rows `first`, `first` + 1, ... of a table, of which `weight` holds the rows `own`, the values [n, <= D] in
    its first columns."""
    skipped = (own.start - first) % own.step
    mine = values[skipped :: own.step]
    weight[(first + skipped) // own.step :, : values.shape[1]][: len(mine)] = mine
