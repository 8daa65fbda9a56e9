"""Two Parquet folders of one table, made by two engines: content hashes, rows, types, and the columns that differ."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from contracts.artifacts import DAY, ITEM, REQUEST, ROW, TIME, USER
from sluice.engines.records import ColumnDifference, TableComparison

_MINUS_ZERO = re.compile(r"(?<![\w.])-0\.0(?![\w.])")
_KEYS = (ROW, USER, ITEM)
_EVENT = (TIME, REQUEST, USER, ITEM)  # by which rows are matched whose ids, hashes of all columns, differ throughout
Explain = Callable[[str], str | None]


def compare_table(name: str, embedded: Path, spark: Path, explain: Explain) -> TableComparison:
    """`explain`: a column's expression in the configuration. A folder that is not there is a table without rows."""
    left, right = _Rows.read(embedded), _Rows.read(spark)
    both = [key for key in left.texts if key in right.texts]
    columns = [column for column in left.names if column in right.names and left.types[column] == right.types[column]]
    if ROW in columns and 2 * len(both) < min(len(left.texts), len(right.texts)):
        left.match_by(_EVENT)
        right.match_by(_EVENT)
        both = [key for key in left.texts if key in right.texts]
        columns.remove(ROW)
    found = [_column(column, left, right, both, explain) for column in columns]
    kinds = [(name, left.types.get(name, "none"), right.types.get(name, "none"))
             for name in sorted({*left.names, *right.names})]
    types = [f"{name}: {one} on embedded, {other} on Apache Spark" for name, one, other in kinds if one != other]
    return TableComparison(
        table=name, rows=len(right.texts), embedded_hash=left.digest(), spark_hash=right.digest(),
        only_embedded=len(left.texts) - len(both), only_spark=len(right.texts) - len(both), types=tuple(types),
        columns=tuple(difference for difference in found if difference),
    )


class _Rows:
    """Values as text by the row's key; -0.0 and 0.0 are one number, as in the engines' own hashes."""

    def __init__(self, table: pa.Table) -> None:
        self.names = sorted(table.column_names)
        self.types = {name: _plain(table.schema.field(name).type) for name in self.names}
        columns = [[_text(value) for value in table.column(name).to_pylist()] for name in self.names]
        self.rows = sorted(zip(*columns, strict=True)) if columns else []
        self.texts: dict[str, tuple[str, ...]] = {}
        self.match_by([name for name in _KEYS if name in self.names][:1] or self.names)

    def match_by(self, names: Sequence[str]) -> None:
        """Keys the rows by those of these columns that there are, and a running number where they are equal."""
        places, seen = [self.names.index(name) for name in names if name in self.names], dict[str, int]()
        self.texts = {}
        for row in self.rows:
            at = "|".join(row[place] for place in places)
            seen[at] = seen.get(at, 0) + 1
            self.texts[at if seen[at] == 1 else f"{at} #{seen[at]}"] = row

    @classmethod
    def read(cls, folder: Path) -> _Rows:
        files = sorted(map(str, folder.rglob("*.parquet")))
        if not files:
            return cls(pa.table({}))
        partitioning = ds.partitioning(pa.schema([(DAY, pa.string())]), flavor="hive")
        hive = any(folder.glob(f"{DAY}=*"))
        named = partitioning if hive else "hive"
        return cls(ds.dataset(files, format="parquet", partitioning=named, partition_base_dir=str(folder)).to_table())

    def digest(self) -> str:
        """SHA-256 over names, types and rows, whatever their order."""
        schema = ",".join(f"{name} {self.types[name]}" for name in self.names)
        rows = "\n".join("\t".join(row) for row in sorted(self.texts.values()))
        return hashlib.sha256(f"{schema}\n{rows}".encode()).hexdigest()


def _plain(kind: pa.DataType) -> str:
    """Text in either of Arrow's two widths is text; the names of a list's element do not matter."""
    text = str(kind).replace("large_", "").replace("_view", "")
    return re.sub(r"<(element|item): ", "<item: ", text).replace(" not null", "")


def _text(value: object) -> str:
    return _MINUS_ZERO.sub("0.0", repr(value)) if isinstance(value, float | list | dict) else repr(value)


def _column(
    column: str, left: _Rows, right: _Rows, keys: Sequence[str], explain: Explain,
) -> ColumnDifference | None:
    here, there = left.names.index(column), right.names.index(column)
    unequal = [key for key in keys if left.texts[key][here] != right.texts[key][there]]
    if not unequal:
        return None
    first = unequal[0]
    return ColumnDifference(column=column, rows=len(unequal), key=first, embedded=left.texts[first][here],
                            spark=right.texts[first][there], expression=explain(column))
