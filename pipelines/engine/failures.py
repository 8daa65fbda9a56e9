"""What an engine raises while it reads or computes, as one sentence of the error tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from contracts.errors import DataError, SchemaError, SluiceError

_FILE = re.compile(r"(?:file|hdfs|s3a?|gs|abfss?):/[^\s,;)\"'\]]+")
_UNREADABLE = (
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "is not a Parquet file",
    "Could not read footer",
    "ParquetDecodingException",
    "Parquet error",
)
_NO_FILE_SYSTEM = ("No FileSystem for scheme", "S3AFileSystem not found")
_NO_COLUMN = (r"with name (`[^ ]+`) cannot be resolved", r"attribute ObjectName\(\[(.+)\]\) is missing")
_NO_SYNTAX = ("PARSE_SYNTAX_ERROR", "invalid argument: found ")
_WORKER_MEMORY = re.compile(r"^ *(?:[\w.]+\.)?(?:Arrow|_Array)?MemoryError\b", re.MULTILINE)
_NO_MEMORY = "remain available for the total memory pool"
_NO_VALUE = (
    "CAST_INVALID_INPUT", "ANSI", "try_", "Cast error", "invalid timestamp", "invalid date", "Division by zero",
)
_NANOSECONDS = re.compile(r"Timestamp\(Nanosecond|TIMESTAMP\(NANOS")


@contextmanager
def explained(what: str, path: str) -> Iterator[None]:
    """Turns Spark's exceptions inside the block into SchemaError or DataError about `what`, read from `path`."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise explain(error, what, path) from error


def explain(error: Exception, what: str, path: str) -> DataError:
    """SchemaError for an unknown column or a header that differs, else DataError, each with its cure."""
    text = str(error)
    column = _column(text)
    if column is not None:
        return SchemaError(f"{what}: unknown column {column} in an expression; {first_line(text)}")
    if "CSV header does not conform to the schema" in text:
        return SchemaError(
            f"{what} ({path}): the CSV header does not conform to schema_ddl; list the columns in the file's order"
        )
    if "PATH_NOT_FOUND" in text or "UNABLE_TO_INFER_SCHEMA" in text:
        return nothing_to_read(what, path)
    if "DATA_SOURCE_NOT_FOUND" in text or "No data source found" in text:
        return DataError(f"{what}: the engine knows no such format ({first_line(text)}); take another, or Apache Spark "
                         "(spark.master) with its package in spark.settings")
    if has_no_reader(error):
        return DataError(f"{what} ({path}): this Apache Spark has no reader of such addresses; add its package to "
                         "spark.settings (docs/how-to/clusters.md), or read with the embedded engine")
    if _NANOSECONDS.search(text):
        return DataError(f"{what} ({path}): it holds times in nanoseconds, which no engine reads from there; write "
                         "them in microseconds (pandas: to_parquet(..., coerce_timestamps='us', "
                         "allow_truncated_timestamps=True))")
    if any(mark in text for mark in _UNREADABLE):
        damaged = _file(text) or _damaged(path) or path
        return DataError(f"{what}: {damaged} is damaged or cut short; copy or write this file again")
    if any(mark in text for mark in _NO_VALUE):
        return DataError(
            f"{what}: an expression fails on a value: {_cause(text)}; use try_cast and its like in derive and in the "
            "label, so that such rows become null and are quarantined where the value is needed"
        )
    return DataError(f"{what} ({path}): {_cause(text)}")


def said_by_workers(error: Exception) -> SluiceError | None:
    """What the platform's code, or the lack of it, says in a Python worker of a cluster; None where it says nothing."""
    text = str(error)
    missing = re.search(r"No module named '(?:pipelines|contracts|pyarrow|numpy)[.\w]*'", text)
    if missing:
        return SluiceError(f"the engine's Python workers have no Sluice ({missing[0]}); install the same wheel on "
                           "every machine, or ship an environment with spark.archives (docs/how-to/clusters.md)")
    told = re.search(r"contracts\.errors\.\w+: ([^\n]+)", text)
    return DataError(told[1]) if told else None


def out_of_memory(error: Exception) -> SluiceError | None:
    """What the embedded engine's memory, or that of Apache Spark's Python workers, was not enough for; None of another
    error.
    """
    if _WORKER_MEMORY.search(str(error)):
        return SluiceError(
            "a Python worker has not enough memory for the rows of its task; lower features.max_key_rows or "
            "spark.sql.adaptive.advisoryPartitionSizeInBytes, raise spark.sql.shuffle.partitions, or give workers more "
            "(spark.executor.pyspark.memory, or what the cluster's manager allows; docs/how-to/clusters.md)")
    if _NO_MEMORY not in str(error):
        return None
    return SluiceError(
        f"the embedded engine has not enough memory ({first_line(str(error))}); give it more by "
        '"sail.runtime.memory_pool.fair.max_size" (bytes) in [spark.settings], or take Apache Spark (spark.master)'
    )


def nothing_to_read(what: str, path: str) -> DataError:
    """Of a path that holds no file."""
    return DataError(f"{what}: nothing to read at {path}; check the path and --data")


def has_no_reader(error: Exception) -> bool:
    """Whether Apache Spark says so of an address such as s3a://bucket/logs."""
    return any(mark in str(error) for mark in _NO_FILE_SYSTEM)


def is_syntax(text: str) -> bool:
    """Whether an engine says so of an expression that is no SQL."""
    return any(mark in text for mark in _NO_SYNTAX)


def _column(text: str) -> str | None:
    """The unknown column that the text complains of, in backticks."""
    spark, sail = (re.search(pattern, text) for pattern in _NO_COLUMN)
    if sail:
        return "`" + "`.`".join(re.findall(r'Identifier\("([^"]*)"\)', sail[1])) + "`"
    if spark:
        return spark[1]
    return "" if "UNRESOLVED_COLUMN" in text else None


def _damaged(path: str) -> str | None:
    """The first local Parquet file at `path` whose footer cannot be read."""
    files = sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    for file in files:
        try:
            pq.read_metadata(file)
        except (OSError, pa.ArrowException):
            return str(file)
    return None


def first_line(text: str) -> str:
    """Without its full stop."""
    return text.strip().split("\n", 1)[0].removesuffix(".")


def _cause(text: str) -> str:
    """The first error condition in the text, as `[CONDITION] sentence`, or its first line."""
    found = re.search(r"\[[A-Z_]+(?:\.[A-Z_]+)*\][^\n]*", text)
    return first_line(found[0] if found else text)


def _file(text: str) -> str | None:
    found = _FILE.search(text)
    return found[0].rstrip(".") if found else None
