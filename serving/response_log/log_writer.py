"""What the log's thread does in a turn: takes rows, appends them to a journal, publishes journals, and looks after dead
writers (serving/response_log/dead_writers.py).

    inbox ▶ batches of bytes ▶ journal ▶ Parquet file
    rows    bounded in bytes    1 s       5 min

Each step leaves what it could not do where it was, so that the next turn goes on from there, in this thread or another.
A row that no column can hold is lost; it and whatever else is lost are counted, and the counts are rows too.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from serving.response_log import journal as journals
from serving.response_log import ledger as ledgers
from serving.response_log.dead_writers import DeadWriters
from serving.response_log.journal import Journal, Vanished
from serving.response_log.ledger import Ledger, Served
from serving.response_log.response_record import LOST, Loggable, ResponseRecord, counted, to_batch

ROWS = 256  # of a batch: its making holds the interpreter
FILE_BYTES = 64 << 20
AGAIN_SECONDS = 5.0  # between two tries to publish
LOOK_SECONDS = 10.0  # between two looks for dead writers
log = logging.getLogger("sluice.serving")


class Waiting(NamedTuple):
    """What will be a row, and the bytes that it counts for."""

    held: Loggable
    size: int


class Taken(NamedTuple):
    """A row, and the bytes that it counts for."""

    row: ResponseRecord
    size: int


class Encoded(NamedTuple):
    """A batch of one day as it goes into a journal."""

    day: str
    content: bytes
    rows: int
    calls: int


class LogWriter:
    """`inbox` and `totals` (calls by status that have no row of their own) are filled by the event loop, and nothing of
    this object is written by it: there is no lock between the two. `read` counts bytes taken out of the inbox, `held`
    those that wait as batches.

    Raises OSError where the folder cannot be used.
    """

    def __init__(
        self, folder: Path, served: Served, inbox: deque[Waiting], totals: Mapping[str, int], *, most_bytes: int,
        file_seconds: float,
    ) -> None:
        self._folder, self._inbox, self._totals = folder, inbox, totals
        self._most, self._file_seconds = most_bytes, file_seconds
        self.ledger: Ledger = ledgers.new(folder, uuid.uuid4().hex[:12], served)
        self.read = self.held = self.lost = 0
        self._served, self._told, self._losses = served, Counter[str](), Counter[Served]()
        self._taken, self._backlog = list[Taken](), deque[Encoded]()
        self._journal: Journal | None = None
        self._full, self._number, self._opened = deque[Journal](), 0, 0.0
        self._journaled, self._publish_at, self._look_at = 0, 0.0, 0.0
        self._dead = DeadWriters(folder, self._inherit)
        self._dead.adopt_all()

    @property
    def waiting(self) -> int:
        """Rows that are on no disk yet."""
        return len(self._inbox) + len(self._taken) + sum(one.rows for one in tuple(self._backlog))

    @property
    def unsettled(self) -> int:
        """Calls that are in no published file yet."""
        return self.ledger.taken - self.ledger.published

    def turn(self) -> None:
        """One time round. Raises OSError as the disk does; what could not be done is done in a later turn."""
        self._encode()
        self._append()
        if self._journal and (time.monotonic() > self._opened + self._file_seconds or self._journal.size > FILE_BYTES):
            self._shelve()
        if time.monotonic() > self._publish_at:
            self._publish()
        if time.monotonic() > self._look_at:
            self._look_at = time.monotonic() + LOOK_SECONDS
            self._dead.adopt()

    def finish(self) -> bool:
        """As `turn`, with nothing left for later; whether that was so. Calls that began and did not end are lost.

        The own rows come first: there may be no time for what dead writers have left."""
        self._write()
        self._publish()
        self._dead.adopt()
        self._write()
        missing = self.ledger.taken - self._journaled
        if missing > 0:
            self._lose(missing)
            self._write()
        self._publish()
        return not self.waiting and not self._full

    def _write(self) -> None:
        """All that waits, into journals to which nothing more goes."""
        for _ in range(2):  # counts that had no room beside the rows go into the second
            self._encode()
            self._append()
        self._shelve()

    def _inherit(self, calls: int, served: Served) -> None:
        """So many that a dead writer has lost are this one's to write."""
        self._lose(calls, served)
        self.ledger.adopt(calls)

    def _lose(self, calls: int, served: Served | None = None) -> None:
        self.lost += calls
        self._losses[served or self._served] += calls

    def _encode(self) -> None:
        while self._inbox or self._taken:
            while self._inbox and len(self._taken) < ROWS:
                self._take(self._inbox.popleft())
            if not self._taken:
                continue
            _, rows = next(groupby(self._taken, key=lambda one: one.row.day))
            same = list(rows)
            self._keep([one.row for one in same])
            self.read += sum(one.size for one in same)
            self._taken = self._taken[len(same):]
        if self.held < self._most:
            self._keep(self._counts())

    def _take(self, one: Waiting) -> None:
        """One that no row can be made of is lost alone."""
        try:
            self._taken.append(Taken(one.held.row(), one.size))
        except Exception as error:
            log.error("a row of the response log cannot be made and is lost: %s", error)
            self.read += one.size
            self._lose(one.held.calls)

    def _counts(self) -> list[ResponseRecord]:
        """A row for each status of which more calls have been counted, and for each bundle of which some are lost."""
        own, found = self._served, []
        for status, calls in tuple(self._totals.items()):
            if more := calls - self._told[status]:
                found.append(counted(status, more, own.version, own.created))
                self._told[status] = calls
        while self._losses:
            served, calls = self._losses.popitem()
            found.append(counted(LOST, calls, served.version, served.created))
        return found

    def _keep(self, rows: Sequence[ResponseRecord]) -> None:
        """As a batch; rows that cannot be written are found by halving, and lost."""
        if not rows:
            return
        try:
            content = to_batch(rows).serialize().to_pybytes()
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if len(rows) > 1:
                self._keep(rows[: len(rows) // 2])
                self._keep(rows[len(rows) // 2 :])
                return
            log.error("a row of the response log cannot be written and is lost: %s", error)
            self._lose(rows[0].calls)
            return
        self._backlog.append(Encoded(rows[0].day, content, len(rows), sum(row.calls for row in rows)))
        self.held += len(content)

    def _append(self) -> None:
        while self._backlog:
            one = self._backlog[0]
            try:
                self._journal_of(one.day).append(one.content, one.calls)
            except Vanished as error:
                log.error("%s, and %d calls with it", error, error.calls)
                self._lose(error.calls)
                self._journaled -= error.calls
                self._drop()
                continue
            self._backlog.popleft()
            self._journaled += one.calls
            self.held -= len(one.content)
        if self._journal:
            self._journal.sync()

    def _journal_of(self, day: str) -> Journal:
        if self._journal and self._journal.day != day:
            self._shelve()
        if self._journal is None:
            self._number += 1
            self._journal = Journal(self._folder, day, self.ledger.writer, self._number)
            self._opened = time.monotonic()
        return self._journal

    def _shelve(self) -> None:
        """Nothing more goes into this journal."""
        if self._journal:
            self._full.append(self._journal)
            self._journal = None

    def _drop(self) -> None:
        if self._journal:
            self._journal.close()
            self._journal = None

    def _publish(self) -> None:
        while self._full:
            done = self._full[0]
            self._publish_at = time.monotonic() + AGAIN_SECONDS
            calls = journals.settle(done.path, self.ledger)
            self._full.popleft()
            done.close()
            self._publish_at = 0.0
            if missing := done.calls - calls:
                log.error("%s was removed or is damaged, and %d calls with it", done.path, missing)
                self._journaled -= missing
                self._lose(missing)
