"""Encoded examples (Parquet) -> tensors.

Reads the files of models/examples/example_files.py. Row groups are the unit of reading; shuffling mixes the rows of
`BUFFER_ROWS` at a time, drawn from row groups in random order, so memory does not grow with the folder. Who reads a
folder again and again may `hold` it, decoded, where it fits. Knows nothing about networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from contracts.artifacts import DRAWS, FRESH, LABEL, POSITION, ROW, USER
from contracts.config.section import Side
from contracts.errors import DataError, SchemaError
from contracts.features.encoding import scale
from contracts.features.feature_spec import BLOCK_SIDES, FeatureSpec
from models.examples.example_files import ExampleFiles, RowGroup, plain
from models.examples.taken_rows import taken_rows

BUFFER_ROWS = 262_144
HELD_BYTES = 2**30  # of a decoded folder that stays in memory
ROW_BYTES = 4 + 4 + 8 + 8  # of a decoded row's label, position, user and row number
CHUNK_ROWS = 4096  # rows interleaved at a time, so that the row-major target stays in cache


class FeatureBlock(NamedTuple):
    """The inputs of one side of the rows: ids [B, sum of widths] int32; dense [B, D] float32."""

    ids: Tensor
    dense: Tensor


class Batch(NamedTuple):
    """label [B] float32, position [B] int32 (1 where the log has none), user [B] and row [B] int64. `log_draws` [B]
    float32: ln of DRAWS, which the log odds of rows drawn for positives are too low by; None where none were drawn.
    `clicked` [P]: the rows with a label, of a batch on its way to a GPU, which would have to be waited for to count
    them; None of others."""

    request: FeatureBlock
    candidate: FeatureBlock
    label: Tensor
    position: Tensor
    user: Tensor
    row: Tensor
    log_draws: Tensor | None = None
    clicked: Tensor | None = None

    def take(self, rows: Tensor) -> Batch:
        """The given rows (indices) of every tensor."""
        whole, tensors = self._replace(clicked=None), list[Tensor]()

        def noted(tensor: Tensor) -> Tensor:
            tensors.append(tensor)
            return tensor

        whole.map(noted)
        taken = iter(taken_rows(tensors, rows))
        return whole.map(lambda _: next(taken))

    def clicks(self) -> Tensor:
        """int64 [P]: the rows with a label."""
        return self.label.nonzero().squeeze(1) if self.clicked is None else self.clicked

    def to(self, device: torch.device) -> Batch:
        """Every tensor on the device; the same batch on a CPU."""
        if device.type == "cpu":
            return self
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self, device: torch.device) -> Batch:
        """In page-locked memory with its clicks counted where the device is a GPU, so that `to` copies beside other
        work; itself otherwise."""
        if device.type != "cuda":
            return self
        return self._replace(clicked=self.clicks()).map(lambda tensor: tensor.pin_memory())

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same change to every tensor."""
        request, candidate = FeatureBlock(*map(change, self.request)), FeatureBlock(*map(change, self.candidate))
        draws, clicked = (None if tensor is None else change(tensor) for tensor in (self.log_draws, self.clicked))
        return Batch(request, candidate, change(self.label), change(self.position), change(self.user),
                     change(self.row), draws, clicked)


class ExampleSet(ExampleFiles):
    """The examples below one folder. `fresh` reads the event-fresh twin of every column that has one.

    Raises DataError when the folder holds no row or an id lies outside its table, SchemaError when a column is missing
    or has another type or length than the spec says.
    """

    drawn = False
    _held: dict[RowGroup, Batch] | None = None

    def __init__(self, folder: Path, spec: FeatureSpec, fresh: bool = False) -> None:
        super().__init__(folder)
        self.spec = spec
        present = set(pq.read_schema(self.groups[0].path).names)
        self._source = {name: f"{name}{FRESH}" if fresh and f"{name}{FRESH}" in present else name
                        for name in _slot_names(spec)}
        self._position, self._user, self.drawn = POSITION in present, USER in present, DRAWS in present
        reserved = [LABEL, ROW, *(name for name in (POSITION, USER, DRAWS) if name in present)]
        self._columns = [*reserved, *self._source.values()]
        missing = [name for name in self._columns if name not in present]
        if missing:
            raise SchemaError(f"{folder} has no column {missing[0]!r}; write the examples again with `sluice features`")

    def batches(
        self, batch_size: int, shuffle: bool = False, seed: int = 0, drop_last: bool = False, *, rank: int = 0,
        world: int = 1, fewest: int = 1,
    ) -> Iterator[Batch]:
        """Batches in file order, or shuffled; one seed gives one order. A last one of fewer rows than `fewest` is left
        out.

        `batch_size` rows are those of all `world` processes together, which yield equally many batches. Of a folder
        held in memory each takes its rows of every batch, so that batches are those of one process; of a larger one
        the row groups are dealt to the ranks, and the last rows of each that fill no batch are left out.
        """
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(self.groups)) if shuffle else np.arange(len(self.groups))
        if world > 1 and self._held is not None:
            buffers = self._buffers([self.groups[i] for i in order], batch_size, shuffle)
            yield from self._cut(buffers, batch_size, generator if shuffle else None, drop_last, rank, world, fewest)
            return
        shards = [[self.groups[i] for i in order[r::world]] for r in range(world)]
        sizes = [batch_size * (r + 1) // world - batch_size * r // world for r in range(world)]
        full = [sum(group.rows for group in shard) // max(size, 1) for shard, size in zip(shards, sizes, strict=True)]
        limit = min(full) if world > 1 else None
        if limit == 0:
            raise DataError(
                f"{self.folder}: {len(self.groups)} row groups of {self.rows} rows give no full batch of {batch_size} "
                f"to each of {world} processes; use fewer processes or a smaller batch"
            )
        buffers = self._buffers(shards[rank], sizes[rank], shuffle)
        stream = self._cut(buffers, sizes[rank], generator if shuffle else None, drop_last or world > 1, fewest=fewest)
        for number, batch in enumerate(stream):
            if number == limit:
                return
            yield batch

    def hold(self, most: int = HELD_BYTES) -> None:
        """Row groups stay decoded in memory once they are read, where all of them take at most `most` bytes.

        Batches are the same. The size of the folder decides, and not what memory is free at the time.
        """
        columns = sum(self.spec.id_width(*sides) + len(self.spec.dense_slots(*sides)) for sides in BLOCK_SIDES.values())
        if self._held is None and sum(group.rows for group in self.groups) * (ROW_BYTES + 4 * columns) <= most:
            self._held = {}

    def log_draws(self) -> np.ndarray:
        """float64 [N], in file order; zeros where no rows were drawn."""
        return np.log(self.column(DRAWS)) if self.drawn else np.zeros(self.rows)

    def _buffers(self, groups: list[RowGroup], batch_size: int, shuffle: bool) -> Iterator[Batch]:
        pending: list[Batch] = []
        files: dict[Path, pq.ParquetFile] = {}
        for group in groups:
            if not shuffle:
                files = {group.path: files[group.path]} if group.path in files else {}
            pending.append(self._decoded(group, files))
            if sum(len(part.row) for part in pending) >= (BUFFER_ROWS if shuffle else batch_size):
                yield _join(pending)
                pending = []
        if pending:
            yield _join(pending)

    def _decoded(self, group: RowGroup, files: dict[Path, pq.ParquetFile]) -> Batch:
        if self._held and group in self._held:
            return self._held[group]
        file = files.get(group.path) or files.setdefault(group.path, pq.ParquetFile(group.path))
        made = self._convert(file.read_row_group(group.number, columns=self._columns), group.path)
        if self._held is not None:
            self._held[group] = made
        return made

    @staticmethod
    def _cut(
        buffers: Iterator[Batch], batch_size: int, generator: np.random.Generator | None, drop_last: bool,
        rank: int = 0, world: int = 1, fewest: int = 1,
    ) -> Iterator[Batch]:
        """Every `world`-th row of each batch from `rank` on; a last batch of fewer than `fewest` rows, or of several
        processes with less than two for each, is left out."""
        rest: Batch | None = None
        for part in buffers:
            buffer = part if rest is None else _join([rest, part])
            rows = len(buffer.row)
            order = torch.from_numpy(generator.permutation(rows)) if generator else None
            full = rows - rows % batch_size
            for start in range(0, full, batch_size):
                span = slice(start + rank, start + batch_size, world)
                yield _span(buffer, span) if order is None else buffer.take(order[span])
            tail = slice(full, rows)
            rest = _span(buffer, tail) if order is None else buffer.take(order[tail])
        least = max(fewest, 1 if world == 1 else 2 * world)
        if rest is not None and len(rest.row) >= least and not drop_last:
            yield rest if world == 1 else _span(rest, slice(rank, None, world))

    def _convert(self, table: pa.Table, path: Path) -> Batch:
        rows = table.num_rows
        label = torch.from_numpy(plain(table.column(LABEL), LABEL).astype(np.float32))
        position = plain(table.column(POSITION), POSITION) if self._position else np.ones(rows)
        user = plain(table.column(USER), USER) if self._user else np.zeros(rows)
        row = plain(table.column(ROW), ROW)
        return Batch(
            self._block(table, BLOCK_SIDES["request"], path), self._block(table, BLOCK_SIDES["candidate"], path), label,
            torch.from_numpy(position.astype(np.int32)), torch.from_numpy(user.astype(np.int64)),
            torch.from_numpy(row.astype(np.int64)),
            torch.from_numpy(np.log(plain(table.column(DRAWS), DRAWS)).astype(np.float32)) if self.drawn else None,
        )

    def _block(self, table: pa.Table, sides: tuple[Side, ...], path: Path) -> FeatureBlock:
        ids: list[np.ndarray] = []
        for slot in self.spec.id_slots(*sides):
            values = plain(table.column(self._source[slot.name]), slot.name).reshape(table.num_rows, -1)
            _check_ids(values, slot.name, slot.width, slot.size, path)
            ids.extend(values.T)
        dense = [
            scale(plain(table.column(self._source[slot.name]), slot.name), self.spec.by_name[slot.field])
            for slot in self.spec.dense_slots(*sides)
        ]
        return FeatureBlock(_interleave(ids, table.num_rows, np.int32), _interleave(dense, table.num_rows, np.float32))


def _slot_names(spec: FeatureSpec) -> list[str]:
    sides = (*BLOCK_SIDES["request"], *BLOCK_SIDES["candidate"])
    return [*(slot.name for slot in spec.id_slots(*sides)), *(slot.name for slot in spec.dense_slots(*sides))]


def _check_ids(values: np.ndarray, name: str, width: int, size: int, path: Path) -> None:
    stored = f"{values.dtype} x {values.shape[1]}"
    if values.dtype.kind != "i" or values.shape[1] != width:
        raise SchemaError(f"{path}: column {name!r} is {stored}, the spec says int32 x {width}; run `sluice features`")
    if values.min() < 0 or values.max() >= size:
        raise DataError(
            f"{path}: column {name!r} holds ids {values.min()} to {values.max()}, its table has {size} rows; examples "
            "and feature spec come from different runs: run `sluice features` again"
        )


def _interleave(columns: list[np.ndarray], rows: int, dtype: type) -> Tensor:
    """Columns side by side, row-major."""
    out: np.ndarray = np.empty((rows, len(columns)), dtype=dtype)
    for start in range(0, rows, CHUNK_ROWS):
        span = slice(start, start + CHUNK_ROWS)
        for index, column in enumerate(columns):
            out[span, index] = column[span]
    return torch.from_numpy(out)


def _span(batch: Batch, span: slice) -> Batch:
    return batch.map(lambda tensor: tensor[span])


def _join(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]

    def blocks(blocks: list[FeatureBlock]) -> FeatureBlock:
        return FeatureBlock(torch.cat([block.ids for block in blocks]), torch.cat([block.dense for block in blocks]))

    return Batch(
        blocks([part.request for part in parts]), blocks([part.candidate for part in parts]),
        torch.cat([part.label for part in parts]), torch.cat([part.position for part in parts]),
        torch.cat([part.user for part in parts]), torch.cat([part.row for part in parts]),
        None if parts[0].log_draws is None else torch.cat([part.log_draws for part in parts]),  # type: ignore[misc]
    )
