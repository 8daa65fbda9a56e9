"""Every answer of a server, appended to a folder of Parquet files; tomorrow's features and the watch read it.

    FOLDER/day=YYYY-MM-DD/answers-TIME-PROCESS.parquet      one row per request, see
                                                            serving/server/response_record.py

A request only puts its row into memory. One thread writes what has gathered each second: into a hidden file, which is
renamed when it is whole, so that a reader never meets half a file and a killed server loses the last second at most.
What cannot be written is kept and tried again, up to a bound; beyond it rows are lost, counted and reported.

The next day's configuration reads the shown items as its log, and whoever saw the clicks brings them as a table:

    [log]
    path = "FOLDER"
    derive = { shown = "explode(arrays_zip(items, positions))", item = "shown.items", position = "shown.positions",
               device = "context['device']" }
    key = ["request_id", "item"]
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections import deque
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from contracts.errors import ConfigError
from serving.server.response_record import ResponseRecord, to_table

FLUSH_SECONDS = 1.0
MOST_ITEMS = 500_000  # shown items (and one per answer) that wait in memory, about 100 MB
ABANDONED_SECONDS = 60.0
log = logging.getLogger("sluice.serving")


class LogState(NamedTuple):
    """`cause` is empty while writing works; `lost` counts rows for which there was no room."""

    cause: str
    waiting: int
    lost: int


class ResponseLog:
    """Raises ConfigError when the folder cannot be made."""

    def __init__(self, folder: Path, most_items: int = MOST_ITEMS, flush_seconds: float = FLUSH_SECONDS) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"answers cannot be logged to {folder}: {error.strerror}; give another folder") from None
        self._folder, self._most, self._seconds = folder, most_items, flush_seconds
        self._waiting: deque[ResponseRecord] = deque()
        self._items, self._lost, self._cause = 0, 0, ""
        self._lock, self._stop = threading.Lock(), threading.Event()
        _remove_abandoned(folder)
        self._thread = threading.Thread(target=self._run, name="answer-log", daemon=True)
        self._thread.start()

    @property
    def state(self) -> LogState:
        with self._lock:
            return LogState(self._cause, len(self._waiting), self._lost)

    def append(self, answer: ResponseRecord) -> None:
        """Never waits for the disk; without room the row is lost and counted."""
        with self._lock:
            if self._items + answer.size > self._most:
                self._lost += 1
                return
            self._waiting.append(answer)
            self._items += answer.size

    def close(self) -> None:
        """Writes what waits, once."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        try:
            while rows := self._next():
                self._write(rows)
                self._taken(rows)
        except OSError as error:
            self._report(f"answers cannot be written to {self._folder}: {error}")
        else:
            self._report("")

    def _next(self) -> list[ResponseRecord]:
        """The first rows that wait, all of one day."""
        with self._lock:
            if not self._waiting:
                return []
            day = self._waiting[0].day
            return list(takewhile(lambda row: row.day == day, islice(self._waiting, len(self._waiting))))

    def _write(self, rows: list[ResponseRecord]) -> None:
        folder = self._folder / f"day={rows[0].day}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"answers-{rows[0].time:%H%M%S%f}-{os.getpid()}-{uuid.uuid4().hex[:8]}.parquet"
        aside = folder / f".{name}"
        try:
            with aside.open("wb") as file:
                pq.write_table(to_table(rows), file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            aside.rename(folder / name)
        except OSError:
            aside.unlink(missing_ok=True)
            raise

    def _taken(self, rows: list[ResponseRecord]) -> None:
        with self._lock:
            for _ in rows:
                self._items -= self._waiting.popleft().size

    def _report(self, cause: str) -> None:
        with self._lock:
            changed, self._cause, lost = bool(cause) != bool(self._cause), cause, self._lost
        if changed and cause:
            log.error("%s; they wait in memory, and requests are answered on", cause)
        elif changed:
            log.warning("answers are written to %s again; %d were lost", self._folder, lost)


def _remove_abandoned(folder: Path) -> None:
    """Hidden files of servers that were killed while they wrote."""
    for path in folder.glob("day=*/.answers-*.parquet"):
        try:
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()
        except FileNotFoundError:  # another server was faster
            continue
