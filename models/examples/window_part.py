"""The two parts of a training window that a search inside it works with: `fit` and, later in time, `holdout`.

Days are kept whole, so that no day's row teaches what is evaluated on a row of the same day. A window of one day, or a
table without times, is cut by the hash of the row instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from contracts.artifacts import ROW
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, ExampleSet
from models.examples.example_files import RowGroup
from models.examples.hashed_share import hashed_share

Part = Literal["fit", "holdout"]


def rows_by_day(groups: Iterable[RowGroup]) -> dict[str, int]:
    """Folder of a day -> its rows."""
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.path.parent.name] = counts.get(group.path.parent.name, 0) + group.rows
    return counts


def holdout_days(rows_of_day: dict[str, int], share: float) -> set[str]:
    """The last days that hold at least `share` of the rows, but never all; none where there is one day alone."""
    days, wanted, found = sorted(rows_of_day), share * sum(rows_of_day.values()), 0
    holdout: set[str] = set()
    while len(days) > 1 and found < wanted:
        last = days.pop()
        holdout.add(last)
        found += rows_of_day[last]
    return holdout


class WindowPart(ExampleSet):
    """Raises DataError when the part has no row. Where rows are cut, batches are smaller than asked, never empty."""

    def __init__(self, folder: Path, spec: FeatureSpec, part: Part, share: float) -> None:
        super().__init__(folder, spec)
        self.part, self.share = part, share
        holdout = holdout_days(rows_by_day(self.groups), share)
        self.by_day = bool(holdout)
        if self.by_day:
            self.groups = [g for g in self.groups if (g.path.parent.name in holdout) == (part == "holdout")]
            self.rows = sum(group.rows for group in self.groups)
        else:
            self.rows = sum(int(self._kept(rows).sum()) for (rows,) in super().parts(ROW))
        if self.rows == 0:
            raise DataError(f"{folder}: part {part!r} has no row when {share:g} are held out; bring a longer log")

    def _kept(self, rows: np.ndarray) -> np.ndarray:
        return (hashed_share(rows) < self.share) == (self.part == "holdout")

    def batches(self, *args: Any, **kwargs: Any) -> Iterator[Batch]:
        """As ExampleSet, without the rows that are left out."""
        for batch in super().batches(*args, **kwargs):
            kept = np.arange(len(batch.row)) if self.by_day else np.flatnonzero(self._kept(batch.row.numpy()))
            if len(kept) == len(batch.row):
                yield batch
            elif len(kept):
                yield batch.take(torch.from_numpy(kept))

    def parts(self, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """As ExampleSet, without the rows that are left out."""
        if self.by_day:
            yield from super().parts(*names)
            return
        for *columns, rows in super().parts(*names, ROW):
            kept = self._kept(rows)
            yield tuple(values[kept] for values in columns)
