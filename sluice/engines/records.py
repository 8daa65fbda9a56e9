"""What `sluice features --compare-engines` found: the tables of one configuration, made by both engines."""

from __future__ import annotations

from contracts.summaries.summary import Record


class ColumnDifference(Record):
    """`rows` on which the engines disagree; `key` names one, with the value of each there. `expression`: what the
    configuration computes the column, or what it is made of, by; None where it is a plain column."""

    column: str
    rows: int
    key: str
    embedded: str
    spark: str
    expression: str | None = None


class TableComparison(Record):
    """Content hashes, and rows that one engine alone has. `types`: columns whose type or presence differs."""

    table: str
    rows: int
    embedded_hash: str
    spark_hash: str
    only_embedded: int = 0
    only_spark: int = 0
    types: tuple[str, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()

    @property
    def equal(self) -> bool:
        return self.embedded_hash == self.spark_hash


class EngineComparison(Record):
    """`rows` of the log were taken, evenly over it."""

    rows: int
    spark_master: str
    tables: tuple[TableComparison, ...]

    @property
    def equal(self) -> bool:
        return all(table.equal for table in self.tables)
