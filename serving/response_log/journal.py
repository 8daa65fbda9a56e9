"""The log's rows before they are a file of their own: appended each second, published every few minutes.

    FOLDER/day=YYYY-MM-DD/.answers-TIME-PROCESS-WRITER-NUMBER.arrows     a journal: an Arrow stream, hidden, appended to
    FOLDER/day=YYYY-MM-DD/answers-TIME-PROCESS-WRITER-NUMBER.parquet     what it is published as, by one rename

A process that ends leaves its journals behind; whoever then holds their locks publishes them. Doing so twice makes the
same file. What an end within a write has left is no whole batch, and is passed over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.atomic_write import to_disk
from serving.response_log.ledger import Ledger
from serving.response_log.response_record import SCHEMA

SUFFIX = ".arrows"
ROWS_AT_ONCE = 20_000  # of a published file's row groups
_HEAD = SCHEMA.serialize().to_pybytes()


class Vanished(OSError):
    """The journal's file was removed while it was written to; `calls` went with it."""

    def __init__(self, path: Path, calls: int) -> None:
        super().__init__(f"{path} was removed while it was written to")
        self.calls = calls


class Journal:
    """One open journal, locked for as long as its process lives. Raises OSError as the disk does."""

    def __init__(self, folder: Path, day: str, writer: str, number: int) -> None:
        (folder / f"day={day}").mkdir(parents=True, exist_ok=True)
        name = f".answers-{datetime.now(UTC):%H%M%S}-{os.getpid()}-{writer}-{number:06d}{SUFFIX}"
        self.day, self.path, self.calls, self._size = day, folder / f"day={day}" / name, 0, 0
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write(_HEAD)
        except BaseException:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            raise

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    def append(self, batch: bytes, calls: int) -> None:
        """A serialised batch of so many calls: all of it or nothing. Raises Vanished."""
        try:
            self.path.stat()
        except FileNotFoundError:
            raise Vanished(self.path, self.calls) from None
        self._write(batch)
        self.calls += calls

    def sync(self) -> None:
        """What was appended survives a loss of power from here on."""
        os.fsync(self._file)

    def close(self) -> None:
        """Leaves the file to whoever publishes it. May be said twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, content: bytes) -> None:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self._file, rest):]
        except BaseException:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(content)


def published(journal: Path) -> Path:
    """The file that a journal becomes."""
    return journal.with_name(journal.name[1:].removesuffix(SUFFIX) + ".parquet")


def writer_and_number(journal: Path) -> tuple[str, int]:
    """Whose journal it is, and which of them."""
    writer, number = journal.name.removesuffix(SUFFIX).rsplit("-", 2)[1:]
    return writer, int(number)


def batches(journal: Path) -> Iterator[pa.RecordBatch]:
    """The whole batches, up to one that a loss of power has damaged: Arrow takes zeros in place of a page that never
    reached the disk for offsets, and reads beyond the batch. Raises FileNotFoundError where it has been published
    meanwhile."""
    with pa.OSFile(str(journal)) as file:
        try:
            stream = pa.ipc.open_stream(file)
        except (pa.ArrowInvalid, OSError):  # not even its head
            return
        with contextlib.suppress(pa.ArrowInvalid, OSError, StopIteration):
            while True:
                batch = stream.read_next_batch()
                batch.validate(full=True)
                if "" in batch["status"].to_pylist():  # no row is without one: zeros from there on, or from before
                    return
                yield batch


def publish(journal: Path) -> int:
    """A Parquet file of the journal's rows, none where it has none; the journal stays. Returns the calls in it.

    A journal that is gone has been published, or nothing is known of it.
    """
    target, calls, rows = published(journal), 0, 0
    if not journal.exists():
        return sum(pq.ParquetFile(target).read(["calls"])["calls"].to_pylist()) if target.exists() else 0
    draft = target.with_name(f".{target.name}")
    try:
        with draft.open("wb") as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
            for table in _groups(journal):
                calls, rows = calls + sum(table["calls"].to_pylist()), rows + table.num_rows
                writer.write_table(table)
        to_disk(draft)
        if rows:
            draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
    return calls


def settle(journal: Path, ledger: Ledger | None) -> int:
    """Publishes and removes it; the calls in it. The ledger is told in between, so that no end there miscounts."""
    calls = publish(journal)
    if ledger:
        ledger.publish(calls, writer_and_number(journal)[1])
    journal.unlink(missing_ok=True)
    return calls


def _groups(journal: Path) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches(journal):
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether nobody alive holds the file; until the block's end nobody else finds that."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:  # somebody was faster
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield bool(os.fstat(descriptor).st_nlink)
    finally:
        os.close(descriptor)
