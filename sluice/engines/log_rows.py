"""Rows taken evenly over a log, written anew in its own format: a small log that spans the same time."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.config.log import Log
from contracts.errors import ConfigError
from contracts.table_files import is_landed_name
from pipelines.reading.text_files import files_at

TEXT_FORMATS = ("csv", "json")


def take_rows(log: Log, path: str, rows: int, target: Path) -> int:
    """Writes about `rows` rows of the log at `path` below `target`; returns how many there are.

    Raises ConfigError for an address, for a format that only Apache Spark's packages read, and for records of several
    lines; DataError where there is nothing to read.
    """
    if "://" in path:
        raise ConfigError(f"--compare-engines takes rows of a log on this machine, not at {path}: copy a part of it "
                          "here and give its folder as --data")
    files = files_at(path, "log")
    target.mkdir(parents=True, exist_ok=True)
    kind = log.format.lower()
    if kind == "parquet" or all(is_landed_name(file.name) for file in files):
        return _take_parquet(files, rows, target)
    if kind not in TEXT_FORMATS:
        raise ConfigError(f"log.format {log.format!r} is read by Apache Spark alone: there is nothing to compare")
    if log.options.get("multiLine", "false").lower() == "true":
        raise ConfigError("--compare-engines takes whole lines of a log; its option multiLine joins them: leave it out")
    header = kind == "csv" and log.options.get("header", "false").lower() == "true"
    return _take_lines(files, rows, target, header, log.options.get("encoding", "utf-8"))


def evenly(total: int, rows: int) -> list[int]:
    """`rows` of the numbers 0 to total - 1 at even distances; all, where there are no more."""
    return list(range(total)) if rows >= total else [k * total // rows for k in range(rows)]


def _take_parquet(files: Sequence[Path], rows: int, target: Path) -> int:
    sizes = [pq.ParquetFile(file).metadata.num_rows for file in files]
    chosen, start = evenly(sum(sizes), rows), 0
    for number, (file, size) in enumerate(zip(files, sizes, strict=True)):
        inside = [row - start for row in chosen if start <= row < start + size]
        start += size
        if inside:
            part = pq.ParquetFile(file).read().take(pa.array(inside))
            folder = _partition_folder(file, target)
            pq.write_table(part, folder / (file.name if is_landed_name(file.name) else f"part-{number}.parquet"))
    return len(chosen)


def _partition_folder(file: Path, target: Path) -> Path:
    """Folders such as day=2026-01-05 hold a column in their name."""
    parts = [part for part in file.parts[:-1] if "=" in part]
    folder = target.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _take_lines(files: Sequence[Path], rows: int, target: Path, header: bool, encoding: str) -> int:
    total = sum(sum(1 for _ in _records(file, header, encoding)) for file in files)
    chosen = evenly(total, rows)
    wanted, seen = iter([*chosen, total]), 0
    following = next(wanted)
    for number, file in enumerate(files):
        with (target / f"part-{number}{''.join(_suffix(file))}").open("w", encoding=encoding, newline="") as copy:
            if header:
                copy.write(_first_line(file, encoding))
            for line in _records(file, header, encoding):
                if seen == following:
                    copy.write(line)
                    following = next(wanted)
                seen += 1
    return len(chosen)


def _suffix(file: Path) -> Iterable[str]:
    return [suffix for suffix in file.suffixes[-2:] if suffix != ".gz"]


def _records(file: Path, header: bool, encoding: str) -> Iterator[str]:
    with _opened(file, encoding) as lines:
        if header:
            next(lines, None)
        yield from lines


def _first_line(file: Path, encoding: str) -> str:
    with _opened(file, encoding) as lines:
        return next(lines, "")


def _opened(file: Path, encoding: str) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding=encoding, newline="")
    return file.open(encoding=encoding, newline="")

