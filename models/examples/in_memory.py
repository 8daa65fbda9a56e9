"""Examples held in memory: some rows of a window, with crosses added that no file holds yet.

For comparisons on bounded samples; whoever trains on a whole log reads it through models/examples/batches.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from contracts.artifacts import DRAWS, LABEL, POSITION, ROW, USER
from contracts.features.encoding import radix_code, scale
from contracts.features.feature_spec import BLOCK_SIDES, FIRST_ID, UNKNOWN, BlockName, FeatureField, FeatureSpec
from models.examples.batches import Batch, ExampleSet, FeatureBlock

EVERY_SIDE = (*BLOCK_SIDES["request"], *BLOCK_SIDES["candidate"])


@dataclass(frozen=True)
class Rows:
    """Columns of some rows of a window: [N] or [N, width] per id slot, raw values per dense slot, reserved ones."""

    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.columns[LABEL])


class ArrayExamples(ExampleSet):
    """The rows as an ExampleSet; `folder` is the one they came from, named in errors."""

    def __init__(self, folder: Path, spec: FeatureSpec, rows: Rows) -> None:
        self.folder, self.spec, self.groups, self.rows = folder, spec, [], len(rows)
        self._rows, self.drawn = rows, DRAWS in rows.columns
        self._whole = Batch(
            self._values("request"), self._values("candidate"),
            torch.from_numpy(rows.columns[LABEL].astype(np.float32)),
            torch.from_numpy(rows.columns[POSITION].astype(np.int32)),
            torch.from_numpy(rows.columns[USER].astype(np.int64)), torch.from_numpy(rows.columns[ROW].astype(np.int64)),
            torch.from_numpy(self.log_draws().astype(np.float32)) if self.drawn else None,
        )

    def _values(self, block: BlockName) -> FeatureBlock:
        rows = len(self._rows)
        ids = np.zeros((rows, sum(slot.width for slot in self.spec.block_ids(block))), dtype=np.int32)
        for slot in self.spec.block_ids(block):
            ids[:, slot.start : slot.start + slot.width] = self._rows.columns[slot.name].reshape(rows, -1)
        numbers = self.spec.block_dense(block)
        dense = np.zeros((rows, len(numbers)), dtype=np.float32)
        for number in numbers:
            dense[:, number.start] = scale(self._rows.columns[number.name], self.spec.by_name[number.field])
        return FeatureBlock(torch.from_numpy(ids), torch.from_numpy(dense))

    def batches(
        self, batch_size: int, shuffle: bool = False, seed: int = 0, drop_last: bool = False, *, rank: int = 0,
        world: int = 1, fewest: int = 1,
    ) -> Iterator[Batch]:
        """As ExampleSet held in memory: of several processes each takes every `world`-th row of a batch."""
        order = np.random.default_rng(seed).permutation(self.rows) if shuffle else np.arange(self.rows)
        tail = self.rows % batch_size
        usable = self.rows - tail if drop_last or tail < max(fewest, 1 if world == 1 else 2 * world) else self.rows
        for start in range(0, usable, batch_size):
            yield self._whole.take(torch.from_numpy(order[start + rank : min(start + batch_size, usable) : world]))

    def column(self, name: str) -> np.ndarray:
        """[N] or [N, width], in the order of the rows."""
        return self._rows.columns[name]

    def parts(self, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """As ExampleSet, all at once."""
        yield tuple(self._rows.columns[name] for name in names)


def rows_of(examples: ExampleSet, spec: FeatureSpec, limit: int, seed: int) -> Rows:
    """All rows of the examples, or a uniform sample of `limit` in file order."""
    kept = np.arange(examples.rows)
    if limit < examples.rows:
        kept = np.sort(np.random.default_rng(seed).choice(examples.rows, limit, replace=False))
    columns = {name: examples.column(name)[kept] for name in columns_read(examples, spec)}
    columns.setdefault(POSITION, np.ones(len(kept), dtype=np.int32))
    columns.setdefault(USER, np.zeros(len(kept), dtype=np.int64))
    return Rows(columns)


def columns_read(examples: ExampleSet, spec: FeatureSpec) -> list[str]:
    """Of the files of a window: those of the slots of a spec, and the reserved ones of its roles."""
    slots = [slot.name for slot in spec.id_slots(*EVERY_SIDE)] + [slot.name for slot in spec.dense_slots(*EVERY_SIDE)]
    reserved = {DRAWS: examples.drawn, POSITION: spec.has_position, USER: spec.has_users}
    return list(dict.fromkeys([*slots, LABEL, ROW, *(name for name, there in reserved.items() if there)]))


def examples_with_crosses(
    spec: FeatureSpec, rows: Mapping[str, Rows], crosses: Sequence[tuple[str, tuple[str, ...]]], representation: str,
    min_count: int,
) -> tuple[FeatureSpec, dict[str, Rows]]:
    """The spec and the rows of every window with (name, parts) as further fields, keys counted in window "train"."""
    fields, added = list(spec.fields), {window: dict(part.columns) for window, part in rows.items()}
    for name, parts in crosses:
        sizes = [spec.slot(part).size for part in parts]
        codes = {window: radix_code([part.columns[p] for p in parts], sizes) for window, part in rows.items()}
        keys, counts = np.unique(codes["train"], return_counts=True)
        keys = keys[counts >= min_count]
        for window, code in codes.items():
            added[window][name] = _look_up(keys, code)
        fields.append(FeatureField(name=name, kind="cross", side="cross", key_type="int64", size=len(keys) + FIRST_ID,
                                   parts=parts, representation=representation))  # type: ignore[arg-type]
    made = spec.model_copy(update={"fields": tuple(fields)})
    return made, {window: Rows(columns) for window, columns in added.items()}


def _look_up(keys: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if not len(keys):
        return np.full(len(codes), UNKNOWN, dtype=np.int32)
    place = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
    return np.where(keys[place] == codes, place + FIRST_ID, UNKNOWN).astype(np.int32)
