"""What Spark raises while it reads or computes, as one sentence of the error tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from contracts.errors import DataError, SchemaError

_FILE = re.compile(r"(?:file|hdfs|s3a?|gs|abfss?):/[^\s,;)\"'\]]+")
_UNREADABLE = (
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "is not a Parquet file",
    "Could not read footer",
    "ParquetDecodingException",
)


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
    if "UNRESOLVED_COLUMN" in text:
        column = re.search(r"with name (`[^ ]+`) cannot be resolved", text)
        return SchemaError(
            f"{what}: unknown column {column[1] if column else ''} in an expression; {_first_line(text)}"
        )
    if "CSV header does not conform to the schema" in text:
        return SchemaError(
            f"{what} ({path}): the CSV header does not conform to schema_ddl; list the columns in the file's order"
        )
    if "PATH_NOT_FOUND" in text or "UNABLE_TO_INFER_SCHEMA" in text:
        return DataError(f"{what}: nothing to read at {path}; check the path and --data")
    if "DATA_SOURCE_NOT_FOUND" in text:
        return DataError(f"{what}: Spark knows no such format ({_first_line(text)}); add its package to spark.settings")
    if any(mark in text for mark in _UNREADABLE):
        return DataError(f"{what}: {_file(text) or path} is damaged or cut short; copy or write this file again")
    if "CAST_INVALID_INPUT" in text or "ANSI" in text or "try_" in text:
        return DataError(
            f"{what}: an expression fails on a value: {_cause(text)}; use try_cast and its like in derive and in the "
            "label, so that such rows become null and are quarantined where the value is needed"
        )
    return DataError(f"{what} ({path}): {_cause(text)}")


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0].removesuffix(".")


def _cause(text: str) -> str:
    """The first Spark error condition in the text, as `[CONDITION] sentence`, or its first line."""
    found = re.search(r"\[[A-Z_]+(?:\.[A-Z_]+)*\][^\n]*", text)
    return _first_line(found[0] if found else text)


def _file(text: str) -> str | None:
    found = _FILE.search(text)
    return found[0].rstrip(".") if found else None
