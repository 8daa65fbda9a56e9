"""Who took what as a sparse matrix of torch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from models.interactions.interactions import Interactions


def action_matrix(log: Interactions) -> Tensor:
    """Coalesced [users, table] of float32: 1 where the user took the item, once or more."""
    place = torch.from_numpy(log.owners * log.table + log.items).unique()
    return sparse(torch.stack([place // log.table, place % log.table]), torch.ones(len(place)), log.users, log.table)


def sparse(places: Tensor, values: Tensor, rows: int, columns: int) -> Tensor:
    """places [2, n], distinct and in order, as `unique` leaves them; values [n]."""
    return torch.sparse_coo_tensor(places, values, (rows, columns), is_coalesced=True, check_invariants=False)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Of two sparse matrices, coalesced; torch goes by compressed rows."""
    with _young_rows():
        return (left @ right).coalesce()


def compressed_rows(matrix: Tensor) -> Tensor:
    """The same matrix in compressed rows, which multiply faster."""
    with _young_rows():
        return matrix.to_sparse_csr()


@contextmanager
def _young_rows() -> Iterator[None]:
    """torch says of compressed rows that they are in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        yield
