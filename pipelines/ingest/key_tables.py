"""The tables of users and items: one row per key, the key as a string under its reserved name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from contracts.atomic_write import put_in_place
from contracts.config.log import Table
from contracts.errors import DataError
from contracts.summaries.features import TableRows
from pipelines.engine.content_hash import row_hash
from pipelines.engine.day_partitions import rows_in, stage_whole
from pipelines.engine.failures import explained
from pipelines.ingest import quarantine
from pipelines.ingest.roles import key_rules, key_text
from pipelines.reading.text_files import CORRUPT

_RANK = "_rank"


class StagedTable(NamedTuple):
    """A table that lies beside its place."""

    found: TableRows
    staging: Path
    folder: Path

    def publish(self) -> TableRows:
        """In place of the table of the run before."""
        put_in_place(self.staging, self.folder)
        return self.found


def stage_table(raw: DataFrame, table: Table, key: str, folder: Path, bad: Path, limit: float) -> StagedTable:
    """Writes beside `folder` its `key` and every other column of the table; malformed rows go to the quarantine `bad`.

    Of rows with one key, the one with the smallest content hash stays, and the log says so. Raises QuarantineError when
    more than the share `limit` of the rows is malformed, DataError when none is left.
    """
    what = folder.name
    columns = [name for name in raw.columns if name != CORRUPT]
    marked = marked_rows(raw, table, key, what)
    with explained(what, table.path):
        counts = quarantine.count(marked, key)
        quarantine.write(marked, counts, columns, bad, what)
        quarantine.check_share(counts.by_reason, counts.rows, limit, what, bad)
        clean = quarantine.clean(marked)
        if counts.distinct != counts.rows - counts.bad:
            clean = one_of_each(clean, key, columns)
        staging = stage_whole(clean.select(key, *[c for c in columns if c != table.key]), folder)
    rows = rows_in(staging)
    if rows == 0:
        raise DataError(f"{what}: no row with a usable {table.key!r} at {table.path}; check {what}.key")
    duplicates = counts.rows - counts.bad - rows
    if duplicates:
        logging.getLogger(__name__).warning(
            "%s: %d of %d rows repeat a value of %s; of each, the row with the smallest hash of its content is kept, "
            "whatever the order of the file, which need not be the newest; write the table with one row per key",
            what, duplicates, counts.rows, table.key)
    found = TableRows(rows_in=counts.rows, rows=rows, duplicates=duplicates, quarantined=counts.bad)
    return StagedTable(found, staging, folder)


def marked_rows(raw: DataFrame, table: Table, key: str, what: str) -> DataFrame:
    """With the `key` as text, and why a row is malformed. Raises SchemaError on a key that is none."""
    keyed = raw.withColumn(key, key_text(raw, table.key, f"{what}.key"))
    return quarantine.mark(keyed, key_rules(table.key, key))


def one_of_each(rows: DataFrame, key: str, columns: Sequence[str]) -> DataFrame:
    """Of rows with one key, the one with the smallest hash of `columns`."""
    order = Window.partitionBy(key).orderBy(row_hash(rows, sorted(columns)))
    return rows.withColumn(_RANK, F.row_number().over(order)).where(F.col(_RANK) == 1).drop(_RANK)
