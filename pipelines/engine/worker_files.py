"""Parquet that Python workers of Apache Spark's local mode write themselves, in folders by the values of some columns.

Java's writer, in the few seconds that a query has, runs as code that is hardly compiled: it took a third of the task
time of half a million events. Arrow's takes a tenth of that. A file is named for its task, so that one that is tried
again writes the same files, and for its run, so that readers know what has changed. Of more folders than a worker may
have files open in (a log of years), one that it comes back to gets a further file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pipelines.engine.arrow_batches import larger
from pipelines.engine.key_batches import key_numbers
from pipelines.engine.session import is_local

ROWS = 65_536  # of a batch that is told apart at once
GROUP = 131_072  # rows of a folder that are written together
HELD = 4 * GROUP  # of all folders that a worker holds
OPEN = 128  # files of a worker; some systems allow a process 256
TOGETHER = 2  # files that are sorted beside one another
PLAIN = (T.NumericType, T.BooleanType, T.StringType, T.DateType, T.TimestampType, T.TimestampNTZType)
Batches = Iterator[pa.RecordBatch]


def workers_write(frame: DataFrame) -> bool:
    """Whether Python workers write files where the driver finds them, and every engine reads the columns' types."""
    return is_local(frame.sparkSession) and all(_plain(field.dataType) for field in frame.schema)


def _plain(kind: T.DataType) -> bool:
    return isinstance(kind.elementType if isinstance(kind, T.ArrayType) else kind, PLAIN)


def write_parted(
    frame: DataFrame, folder: Path, by: Sequence[str], made: Callable[[Batches], Batches] = iter,
    names: Sequence[str] = (),
) -> None:
    """Adds files below FOLDER/COLUMN=VALUE/...; `made`: what is written of the frame's batches; `names`: its columns in
    their order, those of the frame without.
    """
    run, kept = uuid4().hex, [name for name in names or frame.columns if name not in by]

    def write(batches: Batches) -> Batches:
        task = TaskContext.get()
        part = uuid4().hex if task is None else f"{task.partitionId():05d}"
        files = PartedFiles(folder, by, kept, f"part-{part}-{run}.parquet")
        for batch in larger(made(batches), ROWS):
            files.add(batch)
        yield pa.record_batch({"rows": pa.array([files.close()], pa.int64())})

    frame.mapInArrow(write, "rows bigint").collect()


def write_files(frame: DataFrame, folder: Path) -> None:
    """Replaces a folder without parts, by whoever writes sooner. Without rows, there may be no folder."""
    if workers_write(frame):
        shutil.rmtree(folder, ignore_errors=True)
        write_parted(frame, folder, [])
    else:
        frame.write.mode("overwrite").parquet(str(folder))


class PartedFiles:
    """One file in each folder of those that its rows belong to, and further ones where more than OPEN take turns."""

    def __init__(self, folder: Path, by: Sequence[str], kept: Sequence[str], name: str) -> None:
        self._folder, self._by, self._kept, self._name = folder, list(by), list(kept), name
        self._held: dict[Path, list[pa.RecordBatch]] = {}
        self._writers: dict[Path, pq.ParquetWriter] = {}
        self._files: dict[Path, int] = {}  # how many a folder has
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Its rows are written where a folder has enough, or all have too many."""
        for place, part in self._parts(batch):
            held = self._held.setdefault(place, [])
            held.append(part)
            if sum(part.num_rows for part in held) >= GROUP:
                self._write(place)
        if sum(part.num_rows for held in self._held.values() for part in held) > HELD:
            for place in list(self._held):
                self._write(place)

    def close(self) -> int:
        """How many rows were written."""
        for place in list(self._held):
            self._write(place)
        for writer in self._writers.values():
            writer.close()
        return self._rows

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[Path, pa.RecordBatch]]:
        numbers = key_numbers(pa.Table.from_batches([batch]), self._by)
        kept = batch.select(self._kept)
        order = np.argsort(numbers, kind="stable")
        begins = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        if len(begins) > 1:
            kept = kept.take(pa.array(order))
        for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
            values = (batch.column(name)[int(order[begin])].as_py() for name in self._by)
            names = (f"{name}={value}" for name, value in zip(self._by, values, strict=True))
            yield self._folder.joinpath(*names), kept.slice(begin, end - begin)

    def _write(self, place: Path) -> None:
        table = pa.Table.from_batches(self._held.pop(place))
        if place not in self._writers:
            self._open(place, table.schema)
        self._writers[place].write_table(table)
        self._rows += table.num_rows

    def _open(self, place: Path, schema: pa.Schema) -> None:
        """The file that was opened first gives way. One that is tried again may need fewer further files."""
        if len(self._writers) >= OPEN:
            self._writers.pop(next(iter(self._writers))).close()
        number, stem = self._files.get(place, 0), Path(self._name).stem
        self._files[place] = number + 1
        if not number:
            place.mkdir(parents=True, exist_ok=True)
            for left in place.glob(f"{stem}-*.parquet"):
                left.unlink()
        name = f"{stem}-{number}.parquet" if number else self._name
        self._writers[place] = pq.ParquetWriter(place / name, schema)


def put_in_order(folders: Sequence[Path], column: str, group: int = GROUP) -> None:
    """The files of each folder become one, in the order of the column, of row groups of `group` rows."""
    with ThreadPoolExecutor(TOGETHER) as threads:
        list(threads.map(lambda folder: _sorted_file(folder, column, group), folders))


def _sorted_file(folder: Path, column: str, group: int) -> None:
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.read_table(file, partitioning=None, use_threads=False) for file in files]
    table = pa.concat_tables(tables).sort_by(column)
    aside = folder / f".{files[0].name}"
    pq.write_table(table, aside, row_group_size=group)
    for file in files[1:]:
        file.unlink()
    aside.replace(files[0])
