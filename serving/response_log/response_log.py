"""Every call of a server, appended to a folder of Parquet files; tomorrow's features, the watch and the bill read it.

    FOLDER/day=YYYY-MM-DD/answers-TIME-PROCESS-WRITER-NUMBER.parquet     one row per answer, see
                                                                         serving/response_log/response_record.py

A request only puts its row into memory. A thread appends what has gathered each second to a journal, which becomes a
Parquet file every five minutes (serving/response_log/journal.py): a reader never meets half a file, and a killed server
loses the last second at most, which is counted by whoever serves next (serving/response_log/ledger.py). What cannot be
written is kept and tried again, up to a bound in bytes; beyond it calls are lost and counted. The sum of the column
`calls` is the number of calls that the server took, whatever happened to it. What is promised:
docs/reference/response_log.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from contracts.errors import ConfigError
from contracts.thread_name import name_thread
from serving.response_log.ledger import UNKNOWN, Served
from serving.response_log.log_writer import LogWriter, Waiting
from serving.response_log.response_record import LOST, Loggable

FLUSH_SECONDS, FILE_SECONDS = 1.0, 300.0
MOST_BYTES = 128 << 20  # of rows that wait in memory
STUCK_SECONDS = 10.0
CLOSE_SECONDS, CLOSE_AGAIN_SECONDS = 5.0, 0.2
log = logging.getLogger("sluice.serving")


class LogState(NamedTuple):
    """`cause` is empty while writing works; `waiting` rows are on no disk yet, `lost` counts calls without a row of
    their own, `restarts` how often the writing thread has died."""

    cause: str
    waiting: int
    lost: int
    restarts: int = 0


class ResponseLog:
    """`enter`, `append` and `count` belong to one thread, which waits for nothing: no disk, and no lock.

    Raises ConfigError when the folder cannot be used.
    """

    def __init__(
        self, folder: Path, served: Served = UNKNOWN, *, most_bytes: int = MOST_BYTES,
        flush_seconds: float = FLUSH_SECONDS, file_seconds: float = FILE_SECONDS,
    ) -> None:
        self._folder, self._most, self._seconds = folder, most_bytes, flush_seconds
        self._inbox, self._totals = deque[Waiting](), dict[str, int]()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = LogWriter(folder, served, self._inbox, self._totals, most_bytes=most_bytes,
                                     file_seconds=file_seconds)
        except OSError as error:
            raise ConfigError(f"answers cannot be logged to {folder}: {error.strerror}; give another folder") from None
        self._taken = self._given = self._restarts = 0
        self._cause, self._busy_since = "", 0.0
        self._stop, self._finished = threading.Event(), False
        self._thread = self._started()

    @property
    def state(self) -> LogState:
        return LogState(self._stuck or self._cause, self._writer.waiting,
                        self._totals.get(LOST, 0) + self._writer.lost, self._restarts)

    def enter(self, calls: int = 1) -> None:
        """A call, or so many, has begun; `append(..., entered=True)` says what came of one, or nothing ever does."""
        self._taken += calls
        self._writer.ledger.take(self._taken)

    def append(self, row: Loggable, entered: bool = False) -> None:
        """Without room for it, its calls are lost and counted."""
        if not entered and row.calls:
            self._taken += row.calls
            self._writer.ledger.take(self._taken)
        size = row.size
        if self._given - self._writer.read + self._writer.held + size > self._most:
            self._totals[LOST] = self._totals.get(LOST, 0) + row.calls
            return
        self._given += size
        self._inbox.append(Waiting(row, size))

    def count(self, status: str, calls: int = 1) -> None:
        """Calls that ended so without having been read: rows would cost more than such calls do."""
        self.enter(calls)
        self._totals[status] = self._totals.get(status, 0) + calls

    def tend(self) -> None:
        """Starts the writing thread anew where it has died; from time to time. Where the system gives none, the state
        says so until it does."""
        if not self._thread.is_alive() and not self._stop.is_set():
            try:
                self._thread = self._started()
            except RuntimeError as error:
                self._report(f"answers cannot be written to {self._folder}: their thread has died ({error})")
                return
            self._restarts += 1
            log.error("the thread that writes answers to %s has died; another one is started", self._folder)

    def close(self) -> None:
        """Writes what waits; what cannot be written within CLOSE_SECONDS is said, and counted by who serves next."""
        self._stop.set()
        if not self._thread.is_alive() and not self._finished:
            try:
                self._thread = self._started()
            except RuntimeError:  # the system gives no thread, and the end needs none
                self._run()
        self._thread.join(2 * CLOSE_SECONDS)
        if self._thread.is_alive():
            log.error("answers are still being written to %s and are left to it; %d calls are in no file yet",
                      self._folder, self._writer.unsettled)

    @property
    def _stuck(self) -> str:
        spent = time.monotonic() - self._busy_since if self._busy_since else 0.0
        return f"the disk of {self._folder} has not answered for {spent:.0f} s" if spent > STUCK_SECONDS else ""

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="answer-log", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        name_thread()
        while not self._stop.wait(self._seconds):
            self._attempt(self._writer.turn)
        end = time.monotonic() + CLOSE_SECONDS
        while not self._attempt(self._writer.finish) and time.monotonic() < end:
            time.sleep(CLOSE_AGAIN_SECONDS)
        left = self._writer.unsettled
        if left:
            log.error("%d calls could not be written to %s before the end: what its journals lack of them is counted "
                      "as lost at the next start", left, self._folder)
        self._writer.ledger.close(remove=not left)
        self._finished = True

    def _attempt(self, work: Callable[[], bool | None]) -> bool | None:
        """What the work returns, None where it raises; the next turn begins where this one ended."""
        self._busy_since = time.monotonic()
        try:
            done = work()
        except Exception as error:
            self._report(f"answers cannot be written to {self._folder}: {error or type(error).__name__}")
            return None
        else:
            self._report("")
            return done
        finally:
            self._busy_since = 0.0

    def _report(self, cause: str) -> None:
        changed, self._cause = bool(cause) != bool(self._cause), cause
        if changed and cause:
            log.error("%s; they wait in memory, and requests are answered on", cause)
        elif changed:
            log.warning("answers are written to %s again; %d calls were lost", self._folder, self.state.lost)
