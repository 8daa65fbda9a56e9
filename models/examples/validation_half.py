"""Half of the validation window, cut by user: early stopping sees half 0, calibration half 1.

A probability calibrated on the rows that chose the weights would be too sure of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contracts.artifacts import ROW, USER
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, ExampleSet
from models.examples.hashed_share import GOLDEN


def half_of(keys: np.ndarray) -> np.ndarray:
    """0 or 1 of each int64 key: the top bit of key x GOLDEN modulo 2^64."""
    return (keys.astype(np.int64).view(np.uint64) * GOLDEN >> np.uint64(63)).astype(np.int64)


def halves(examples: ExampleSet) -> np.ndarray:
    """Half of every row in file order: by user, or by row where the log has no users."""
    return half_of(examples.column(_key(examples.spec)))


class ValidationHalf(ExampleSet):
    """Batches keep their rows of this half, so they are smaller than asked. Raises DataError when no row is left."""

    def __init__(self, folder: Path, spec: FeatureSpec, half: int, fresh: bool = False) -> None:
        super().__init__(folder, spec, fresh)
        self.half = half
        of_both, self.rows = self.rows, sum(int((half_of(k) == half).sum()) for (k,) in super().parts(_key(spec)))
        if self.rows == 0:
            raise DataError(f"{folder}: half {half} of the users has no row among {of_both}; early stopping "
                            "and calibration each need users of their own: widen the validation window")

    def batches(self, *args: Any, **kwargs: Any) -> Iterator[Batch]:
        """As ExampleSet, without the rows that are left out, and without batches of none."""
        for batch in super().batches(*args, **kwargs):
            keys = batch.user if self.spec.has_users else batch.row
            kept = np.flatnonzero(half_of(keys.numpy()) == self.half)
            if len(kept):
                yield batch.take(torch.from_numpy(kept))

    def parts(self, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """As ExampleSet, without the rows that are left out."""
        for *columns, keys in super().parts(*names, _key(self.spec)):
            kept = half_of(keys) == self.half
            yield tuple(values[kept] for values in columns)


def _key(spec: FeatureSpec) -> str:
    return USER if spec.has_users else ROW
