"""What files of a response log hold, waiting for it, and a log that writes at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from serving.response_log.response_log import MOST_BYTES, ResponseLog


def rows(folder: Path) -> list[dict]:
    files = sorted(folder.glob("day=*/answers-*.parquet"))
    return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]


def read(folder: Path) -> list[str]:
    return sorted(row["request_id"] for row in rows(folder) if row["request_id"])


def calls(folder: Path, status: str) -> int:
    return sum(row["calls"] for row in rows(folder) if row["status"] == status)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def quick(folder: Path, most_bytes: int = MOST_BYTES) -> ResponseLog:
    return ResponseLog(folder, flush_seconds=0.01, file_seconds=0.0, most_bytes=most_bytes)
