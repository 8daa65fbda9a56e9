"""Events that a server landed, read by the configuration that the server's bundle was made with.

They lie in Parquet under the path of a table of any format, and hold the columns that a server knows: a derived column
such as the event's time, not always what it is derived from. What is landed is what requests were answered by, so that
it wins; where it is null, or not landed, the expression counts. A column that later files hold as another type is
read as the newest have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.config.log import Source
from contracts.errors import DataError, SchemaError
from contracts.table_files import is_hidden, is_landed_name
from pipelines.engine.expressions import with_expression
from pipelines.reading import column_types

_DERIVED = "_derived"
_FRACTIONS, _WHOLE = ("float", "double"), ("tinyint", "smallint", "int", "bigint")


def is_landed(source: Source, path: str, what: str) -> bool:
    """Whether all files of a folder of this machine are landed ones.

    Raises DataError where some are and the others are of the table's own format, which is not Parquet."""
    folder = Path(path.removeprefix("file://"))
    if not folder.is_dir():
        return False
    names = [file.name for file in sorted(folder.rglob("*")) if file.is_file()
             and not is_hidden(file.relative_to(folder))]
    other = next((name for name in names if not is_landed_name(name)), None)
    if other is None or source.format.lower() == "parquet":
        return bool(names) and other is None
    if any(map(is_landed_name, names)):
        raise DataError(f"{what} ({path}): the folder holds events that a server landed, which are Parquet, beside "
                        f"{other}, which is read as {source.format}; keep either in a folder of its own, or write all "
                        "of it as Parquet with the landed columns")
    return False


def as_landed(source: Source) -> Source:
    """The same table in Parquet, whose files carry their columns; later ones may hold more of them."""
    return source.model_copy(update={"format": "parquet", "options": {"mergeSchema": "true"}, "schema_ddl": None})


def groups(path: str, what: str) -> list[list[str]]:
    """The files, oldest first, as pipelines/reading/column_types.py groups them. Raises DataError where one is
    damaged."""
    folder = Path(path.removeprefix("file://"))
    files = [file for file in folder.rglob("*.parquet") if not is_hidden(file.relative_to(folder))]
    return [list(map(str, group)) for group in column_types.groups(files, what)]


def joined(frames: Sequence[DataFrame]) -> DataFrame:
    """Of such groups, each column as the last one that has it: what has no such value is null."""
    kinds = {name: kind for frame in frames for name, kind in frame.dtypes}

    def told(frame: DataFrame) -> DataFrame:
        return frame.select(*[_as(kinds[name], F.col(f"`{name}`"), kind).alias(name) for name, kind in frame.dtypes])

    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), map(told, frames))


def _as(wanted: str, column: Column, kind: str) -> Column:
    """As a server lands it: a fraction is no whole number, and a list no single value."""
    if kind == wanted:
        return column
    if kind.startswith("array") != wanted.startswith("array"):
        return F.lit(None).cast(wanted)
    made = column.try_cast(wanted)
    return F.when(made == column, made) if kind in _FRACTIONS and wanted in _WHOLE else made


def derive(frame: DataFrame, source: Source, what: str) -> DataFrame:
    """With the derived columns that are landed or can be derived from what is; without the others: whoever reads one
    of those says that it is missing."""
    for name, expression in source.derive.items():
        given = name in frame.columns
        try:
            made, kind = with_expression(frame, _DERIVED if given else name, expression, f"{what}.derive.{name}")
        except SchemaError:  # made of a column that is not landed
            continue
        told = F.col(f"`{name}`").try_cast(kind) if dict(frame.dtypes).get(name) != kind else F.col(f"`{name}`")
        frame = made.withColumn(name, F.coalesce(told, F.col(_DERIVED))).drop(_DERIVED) if given else made
    return frame
