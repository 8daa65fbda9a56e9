"""A log's writer without its thread: fed and turned by hand."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pyarrow.parquet as pq

from serving.response_log.ledger import Served
from serving.response_log.log_writer import LogWriter, Waiting
from serving.response_log.response_record import ResponseRecord
from tests.serving.logged_responses import NOON

SERVED = Served("shop-1", NOON)


class Driven:
    """A writer, fed and turned by hand."""

    def __init__(self, folder: Path, file_seconds: float = 3600.0) -> None:
        self.folder, self.inbox, self.totals, self.taken = folder, deque[Waiting](), dict[str, int](), 0
        self.writer = LogWriter(folder, SERVED, self.inbox, self.totals, most_bytes=1 << 20, file_seconds=file_seconds)

    def give(self, *rows: ResponseRecord) -> None:
        for row in rows:
            self.inbox.append(Waiting(row, row.size))
            self.taken += row.calls
        self.writer.ledger.take(self.taken)

    def rows(self) -> list[tuple[str, int]]:
        tables = [pq.ParquetFile(path).read() for path in sorted(self.folder.glob("day=*/answers-*.parquet"))]
        return sorted((row["request_id"] or row["status"], row["calls"]) for table in tables
                      for row in table.to_pylist())
