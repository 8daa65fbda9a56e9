"""OUT/candidates: what retrieval returns to past requests, with the ranker's logits; serving writes, models read.

    items_ids.npy, items_dense.npy, items_bid.npy    the item table, one row more than items: nothing known
    WINDOW/NAME.npy                                  the arrays of `CandidateLists`

R requests, K candidates each, padded right with row -1. Shapes of inputs are those of the feature spec.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import DataError


@dataclass(frozen=True)
class CandidateItems:
    """ids int32 [I + 1, W], dense float32 [I + 1, D], bid float32 [I + 1] (1 where the log has none)."""

    ids: np.ndarray
    dense: np.ndarray
    bid: np.ndarray

    def save(self, folder: Path) -> None:
        for name in ("ids", "dense", "bid"):
            save_array(folder / f"items_{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> CandidateItems:
        return cls(*(_loaded(folder / f"items_{name}.npy") for name in ("ids", "dense", "bid")))


@dataclass(frozen=True, kw_only=True)
class CandidateLists:
    """request_ids [R, Wr], request_dense [R, Dr]; rows int32 [R, K] of the item table; pair_ids [R, K, C] and
    pair_dense [R, K, P]: what the candidate block holds behind the item's inputs; teacher float32 [R, K] logits of the
    ranker; tower [R, K] inner products; clicked bool [R, K]; uniform bool [R]: drawn among all requests, the others for
    their click.
    """

    request_ids: np.ndarray
    request_dense: np.ndarray
    rows: np.ndarray
    pair_ids: np.ndarray
    pair_dense: np.ndarray
    teacher: np.ndarray
    tower: np.ndarray
    clicked: np.ndarray
    uniform: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def valid(self) -> np.ndarray:
        """bool [R, K]: not padding."""
        return self.rows >= 0

    def save(self, folder: Path) -> None:
        for field in fields(self):
            save_array(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder: Path) -> CandidateLists:
        """Raises DataError when they have not been made."""
        return cls(**{field.name: _loaded(folder / f"{field.name}.npy") for field in fields(cls)})


def _loaded(path: Path) -> np.ndarray:
    try:
        return np.asarray(load_array(path))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run `sluice prerank` again") from None
