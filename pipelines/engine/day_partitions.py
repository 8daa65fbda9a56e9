"""Folders of Parquet partitioned by `day`, written so that a killed job leaves no half-written day.

Everything is first written aside, in the same parent folder; each day then takes its place in one rename, so that it is
never half there nor missing. A day whose rows are those that it held is left untouched, down to its files: a second run
does nothing twice, and late data change the days they touch alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from contracts.artifacts import DAY, TIME
from contracts.atomic_write import put_in_place
from contracts.errors import DataError
from contracts.progress import report
from pipelines.engine.arrow_batches import LookUp, looked_up
from pipelines.engine.content_hash import day_hashes
from pipelines.engine.worker_files import ROWS, workers_write, write_files, write_parted


def stage(frame: DataFrame, folder: Path, tables: Sequence[LookUp] = (), names: Sequence[str] = ()) -> Path:
    """Writes the rows beside `folder` and returns where; rows of one day share files, large days are split.

    `tables` are what Python workers, where they write, look up for the rows; `names` are then the columns in their
    order.
    """
    staging = staging_of(folder)
    shutil.rmtree(staging, ignore_errors=True)
    if workers_write(frame):
        made = partial(looked_up, tables=tuple(tables), rows=ROWS) if tables else iter
        write_parted(frame, staging, [DAY], made, names)
    else:
        frame.hint("rebalance", DAY).write.partitionBy(DAY).parquet(str(staging))
    staging.mkdir(parents=True, exist_ok=True)  # where there was no row, an engine may leave no folder
    return staging


def staging_of(folder: Path) -> Path:
    """Where the rows of a table lie until they take its place."""
    return folder.with_name(f".{folder.name}.staging")


def publish(spark: SparkSession, staging: Path, folder: Path, only: Sequence[str] | None = None) -> list[str]:
    """Moves staged days into `folder`; days of `only` (all days, when None) that were not staged are removed.

    Returns the days that were written: those that are new or have changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staged = {path.name for path in staging.glob(f"{DAY}=*")}
    present = {path.name for path in folder.glob(f"{DAY}=*")}
    replaced = present if only is None else present & {f"{DAY}={day}" for day in only}
    written = sorted(staged - _unchanged(spark, staging, folder, staged & present))
    for name in written:
        put_in_place(staging / name, folder / name)
    for name in sorted(replaced - staged):
        shutil.rmtree(folder / name)
    shutil.rmtree(staging)
    return [name.removeprefix(f"{DAY}=") for name in written]


def write_days(
    frame: DataFrame, folder: Path, only: Sequence[str] | None = None, tables: Sequence[LookUp] = (),
    names: Sequence[str] = (),
) -> list[str]:
    """Replaces whole days: those of `only`, or the whole folder. The frame holds rows of these days alone; `tables` and
    `names` as in `stage`.
    """
    return publish(frame.sparkSession, stage(frame, folder, tables, names), folder, only)


def drop_days(folder: Path, only: Sequence[str] | None = None) -> None:
    """Removes these days (all, when None); the folder stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in sorted(folder.glob(f"{DAY}=*")):
        if only is None or place.name.removeprefix(f"{DAY}=") in only:
            shutil.rmtree(place)


def days_in(folder: Path) -> list[str]:
    """In order."""
    return sorted(place.name.removeprefix(f"{DAY}=") for place in folder.glob(f"{DAY}=*"))


def groups_of(rows: Mapping[str, int], most: int) -> list[list[str]]:
    """Days, or other parts, one after another, together while they have no more than `most` rows; a larger one is
    alone.
    """
    groups: list[list[str]] = []
    held = 0
    for part in sorted(rows):
        if not groups or held + rows[part] > most:
            groups.append([])
            held = 0
        groups[-1].append(part)
        held += rows[part]
    return groups


def in_turn(what: str, groups: Sequence[list[str]], rows: Mapping[str, int]) -> Iterator[list[str]]:
    """The groups, each reported by its rows when the next one is asked for. Of a single one only the rows are said, for
    nobody knows how far its query is: an engine writes nothing before it has sorted everything.
    """
    done, rows_in_all = 0, sum(rows[part] for group in groups for part in group)
    if len(groups) == 1:
        report(f"{what}: {rows_in_all:,} rows at once")
        yield groups[0]
        return
    for group in groups:
        report(what, done, rows_in_all)
        yield group
        done += sum(rows[part] for part in group)
    report(what, done, rows_in_all)


def read_days(spark: SparkSession, folder: Path, days: Sequence[str]) -> DataFrame:
    """The rows of these days, of which there is one at least, from their own files: no engine opens another's.

    Rows of several days have `_time`, which says their `day`. Raises DataError where the days' columns do not go
    together.
    """
    found = read_places(spark, [folder / f"{DAY}={day}" for day in days])
    return found.withColumn(DAY, F.lit(days[0]) if len(days) == 1 else F.date_format(TIME, "yyyy-MM-dd"))


def read_places(spark: SparkSession, places: Sequence[Path]) -> DataFrame:
    """The rows of these folders of one table, one at least with files, as those have them: without `day`."""
    return _parquet(spark, _declared(places), *places)


def read_table(spark: SparkSession, folder: Path) -> DataFrame:
    """All rows of a table with days, and their `day`, or of one without. Its columns are taken from the files, for
    which Apache Spark would run a job. Raises DataError where the days' columns do not go together.
    """
    days = [folder / f"{DAY}={day}" for day in days_in(folder)]
    return _parquet(spark, _declared(days).add(DAY, "string") if days else _declared([folder]), folder)


def _declared(places: Sequence[Path]) -> StructType:
    schemas = [schema for schema in map(_schema, places) if schema is not None]
    try:
        return from_arrow_schema(pa.unify_schemas(schemas))
    except pa.ArrowException as error:
        folder = places[0].parent
        raise DataError(f"the days of {folder} differ in a column's type ({error}); run again without --day") from None


def rows_in(folder: Path) -> int:
    """By the footers of its Parquet files."""
    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


def _unchanged(spark: SparkSession, staging: Path, folder: Path, names: Collection[str]) -> set[str]:
    """The folders of these days that hold the same rows in both places."""
    by_schema: dict[pa.Schema, list[str]] = {}
    for name in names:
        schema = _schema(staging / name)
        if schema is not None and schema == _schema(folder / name):
            by_schema.setdefault(schema, []).append(name.removeprefix(f"{DAY}="))
    unchanged = set()
    for schema, days in by_schema.items():
        new, old = (day_hashes(_read_days(spark, place, schema, days)) for place in (staging, folder))
        unchanged |= {f"{DAY}={day}" for day, found in new.items() if old.get(day) == found}
    return unchanged


def _read_days(spark: SparkSession, folder: Path, schema: pa.Schema, days: Sequence[str]) -> DataFrame:
    """Of a folder whose other days may have other columns."""
    declared = from_arrow_schema(schema)
    if len(days) == 1:
        return _parquet(spark, declared, folder / f"{DAY}={days[0]}").withColumn(DAY, F.lit(days[0]))
    return _parquet(spark, declared.add(DAY, "string"), folder).where(F.col(DAY).isin(list(days)))


def _parquet(spark: SparkSession, declared: StructType, *places: Path) -> DataFrame:
    return spark.read.schema(declared).option("pathGlobFilter", "*.parquet").parquet(*map(str, places))


def _schema(day: Path) -> pa.Schema | None:
    """Column names and types; days of an older configuration may have others."""
    first = next(day.glob("*.parquet"), None)
    return None if first is None else pq.read_schema(first).remove_metadata()


def write_whole(frame: DataFrame, folder: Path) -> None:
    """Replaces a folder without days."""
    put_in_place(stage_whole(frame, folder), folder)


def stage_whole(frame: DataFrame, folder: Path) -> Path:
    """Writes the rows of a table without days beside `folder` and returns where."""
    staging = staging_of(folder)
    write_files(frame, staging)
    if next(staging.glob("*.parquet"), None) is None:
        staging.mkdir(parents=True, exist_ok=True)
        pq.write_table(to_arrow_schema(frame.schema).empty_table(), staging / "part-0.parquet")
    return staging
