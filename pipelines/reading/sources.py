"""Reads a configured table with any reader of the engine; rows that do not fit the schema are marked, not dropped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from contracts.config.log import Source
from contracts.errors import ConfigError, DataError, SchemaError
from contracts.locks.own_folder import own_folder, remove_left
from pipelines.engine.embedded import is_embedded
from pipelines.engine.expressions import with_expression
from pipelines.engine.failures import explained, first_line, has_no_reader, nothing_to_read
from pipelines.engine.session import is_local
from pipelines.reading import json_files, landed, pandas_types, text_files, text_types
from pipelines.reading.text_files import CORRUPT

COPIES = "sluice-table."  # folders of temporary files (TMPDIR)
_TEXT_FORMATS = ("csv", "json")
_TEXT_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "enforceSchema": "false",
                 "recursiveFileLookup": "true"}  # all files, and no columns of their folders' names: as embedded


def read(spark: SparkSession, source: Source, path: str, held: ExitStack, what: str = "log") -> DataFrame:
    """Raw columns, derived columns, and CORRUPT; of events that a server landed in their own format, whatever the
    source's. What is kept of the source is let go when `held` closes, or was left by a killed process, now.

    Text is parsed once and kept: Apache Spark converts only the columns that a query reads, so that whether a row fits
    would otherwise differ from query to query; the embedded engine's own readers fail on a row that does not fit.

    Raises DataError when there is nothing to read or a file is damaged, SchemaError when a derived column's expression
    names an unknown column or a column has a backtick in its name, ConfigError when an expression is no SQL,
    schema_ddl is no DDL, or an option of a text format is unknown to the embedded engine.
    """
    remove_left(COPIES)
    is_landed = landed.is_landed(source, path, what)
    source = landed.as_landed(source) if is_landed else source
    with explained(what, path):
        embedded_text = _is_text(source) and is_embedded(spark)
        load = _staged if embedded_text else _landed if is_landed else _reached
        frame = load(spark, source, path, held, what)
        _check_names(frame.columns, f"{what} ({path})")
        corrupt = F.col(CORRUPT) if CORRUPT in frame.columns else F.lit(None).cast("string")
        frame = frame.select(*[F.col(f"`{c}`") for c in frame.columns if c != CORRUPT], corrupt.alias(CORRUPT))
    if is_landed:
        return landed.derive(frame, source, what)
    for name, expression in source.derive.items():
        frame, _ = with_expression(frame, name, expression, f"{what}.derive.{name}")
    if _is_text(source) and not embedded_text:
        held.callback(frame.unpersist)
        return frame.persist()
    return frame


def _check_names(names: Sequence[str], where: str) -> None:
    """Raises SchemaError on a name that an expression cannot say."""
    for name in names:
        if "`" in name:
            raise SchemaError(f"{where}: the name of the column {name} has a backtick in it, which stands around names "
                              "in SQL and not in them; rename it in the file")


def _is_text(source: Source) -> bool:
    return source.format.lower() in _TEXT_FORMATS


def _staged(spark: SparkSession, source: Source, path: str, held: ExitStack, what: str) -> DataFrame:
    """Through Parquet files of texts, in a temporary folder that goes when `held` closes."""
    folder = held.enter_context(own_folder(COPIES))
    local = _fetched(path, folder / "fetched", what) if "://" in path else path
    declared, files = _declared(source), text_files.files_at(local, what)
    if source.format.lower() == "json":
        options = text_files.known_options(source.options, text_files.JSON_OPTIONS, what, "json")
        encoding = options.get("encoding", "utf-8")
        schema = declared or json_files.inferred(files, encoding)
        json_files.stage_json(files, schema, encoding, folder / "rows")
        return text_types.with_times(spark.read.parquet(str(folder / "rows")), schema)
    options = text_files.known_options(source.options, text_files.CSV_OPTIONS, what, "csv")
    names = declared.names if declared else text_files.csv_names(files[0], options)
    text_files.stage_csv(files, [name for name in names if name != CORRUPT], options, folder / "rows", what)
    schema = declared or StructType([field for name in names for field in StructType().add(name, StringType())])
    return text_types.typed(spark.read.parquet(str(folder / "rows")), schema, options, what)


def _fetched(address: str, folder: Path, what: str) -> str:
    """A copy of what lies at an address such as s3a://bucket/logs. Raises DataError where Arrow cannot read it."""
    try:
        system, place = fs.FileSystem.from_uri(address.replace("s3a://", "s3://", 1))
        found = system.get_file_info(place)
        if found.type == fs.FileType.NotFound:
            raise nothing_to_read(what, address)
        folder.mkdir()
        copy = folder if found.type == fs.FileType.Directory else folder / found.base_name
        fs.copy_files(place, str(copy), source_filesystem=system)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"{what}: {address} cannot be read ({first_line(str(error))}); check address and access, copy the files "
            "to this machine, or read with an Apache Spark that has a reader of it (docs/how-to/clusters.md)"
        ) from None
    return str(copy)


def _landed(spark: SparkSession, source: Source, path: str, held: ExitStack, what: str) -> DataFrame:
    groups = landed.groups(path, what)
    return landed.joined([_load(spark, source, path if len(groups) == 1 else files, what) for files in groups])


def _reached(spark: SparkSession, source: Source, path: str, held: ExitStack, what: str) -> DataFrame:
    """In place; from a copy where an Apache Spark of this machine alone has no reader of the address, or where files of
    this machine hold types that an engine does not read."""
    if source.format.lower() == "parquet" and (is_embedded(spark) or is_local(spark)):
        files = pandas_types.files_to_copy(Path(path))
        if files:
            folder = held.enter_context(own_folder(COPIES))
            path = str(pandas_types.stage_plain(files, Path(path), folder, what))
    try:
        return _load(spark, source, path, what)
    except (PySparkException, Py4JJavaError) as error:
        if not (has_no_reader(error) and is_local(spark)):
            raise
    folder = held.enter_context(own_folder(COPIES))
    return _load(spark, source, _fetched(path, folder / "fetched", what), what)


def _load(spark: SparkSession, source: Source, path: str | list[str], what: str) -> DataFrame:
    text = _is_text(source)
    options = {**(_TEXT_OPTIONS if text else {}), **source.options}

    def reader() -> DataFrameReader:
        return spark.read.format(source.format).options(**options)

    schema = _declared(source)
    if text and schema is None:
        schema = reader().load(path).schema
    if schema is None:
        frame = reader().load(path)
        if not frame.columns:  # the embedded engine reads nothing where there is nothing
            raise nothing_to_read(what, str(path))
        return frame
    if text and CORRUPT not in schema.names:
        schema = schema.add(CORRUPT, StringType())
    return reader().schema(schema).load(path)


def _declared(source: Source) -> StructType | None:
    if source.schema_ddl is None:
        return None
    try:
        parsed = StructType.fromDDL(source.schema_ddl)
    except Exception as error:
        raise ConfigError(f"schema_ddl {source.schema_ddl!r} is no Spark DDL: {str(error).splitlines()[0]}") from None
    if not isinstance(parsed, StructType):
        raise ConfigError(f"schema_ddl {source.schema_ddl!r} is one type; write columns, such as 'a INT, b STRING'")
    return parsed
