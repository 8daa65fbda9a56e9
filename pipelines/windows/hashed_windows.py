"""Windows of a table without times: each row falls by a hash of its id, mixed with the seed, on any cluster alike.

    window of a row = the one whose [low, high) holds xxhash64("window", seed, _row), read as a number in [0, 1)

Where the configuration says `test_where`, its rows are the test window and the other windows share the rest. There is
no embargo: nothing is before or after anything.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import ROW, TEST_ROW
from contracts.config.config import Config
from contracts.errors import EmptyLogError, SchemaError, WindowError
from contracts.windows import HashedShares, read_hashed
from pipelines.engine.expressions import with_expression
from pipelines.windows.windows import WINDOW

LOWEST, HASHES = -(2**63), 2**64


class HashedWindows(HashedShares):
    """The shares with the rows that fall into them."""

    @classmethod
    def of(cls, config: Config) -> HashedWindows:
        """Shares of 0 give no window."""
        marked = config.windows.test_where is not None
        named = config.windows.named().items()
        given = {name: float(w) for name, w in named if not isinstance(w, tuple) and not (marked and name == "test")}
        total = sum(given.values())
        shares = {name: share / total for name, share in given.items() if share > 0}
        return cls(seed=config.seed, shares=shares, test_rows=marked)

    @property
    def names(self) -> list[str]:
        """Of the windows, in their order."""
        return [*self.shares, *(["test"] if self.test_rows else [])]

    def assign(self, rows: DataFrame) -> DataFrame:
        """Adds `_window`, never null."""
        hashed = F.xxhash64(F.lit("window"), F.lit(self.seed), F.col(ROW))
        names = list(self.shares)
        chosen = F.lit(names[-1])
        for name, end in reversed(list(zip(names, accumulate(self.shares.values()), strict=True))[:-1]):
            chosen = F.when(hashed < F.lit(LOWEST + round(end * HASHES)), F.lit(name)).otherwise(chosen)
        if self.test_rows:
            chosen = F.when(F.col(TEST_ROW), F.lit("test")).otherwise(chosen)
        return rows.withColumn(WINDOW, chosen)

    def count(self, rows: DataFrame) -> dict[str, int]:
        """Rows per window. Raises EmptyLogError without rows, WindowError when a window has none."""
        found = {row[WINDOW]: row["count"] for row in self.assign(rows).groupBy(WINDOW).count().collect()}
        if not found:
            raise EmptyLogError("there are no events to cut into windows; run ingest on a log with rows")
        for name in self.names:
            if name not in found:
                raise WindowError(self._empty(name, sum(found.values())))
        return {name: found[name] for name in self.names}

    def _empty(self, name: str, rows: int) -> str:
        if self.test_rows and name == "test":
            return f"windows.test_where is true for none of {rows} rows; correct it, or leave it out to draw a share"
        rest = " that windows.test_where leaves" if self.test_rows else ""
        return (
            f"window {name!r} got none of {rows} rows: its share of those{rest} is {self.shares[name]:g}; raise the "
            "share or bring a longer table"
        )

    @classmethod
    def read(cls, path: Path) -> HashedWindows:
        """Raises DataError when there is no such file, or one of a log with times."""
        return cls(**read_hashed(path).plain())


def add_test_rows(frame: DataFrame, expression: str) -> DataFrame:
    """Adds `_test`: whether the row is of the test window; null counts as not.

    Raises ConfigError when the expression is no SQL, SchemaError on an unknown column or a result that is no
    boolean.
    """
    marked, found = with_expression(frame, TEST_ROW, expression, "windows.test_where")
    if found != "boolean":
        raise SchemaError(f"windows.test_where {expression!r} is {found}, expected a condition that is true or false")
    return marked.withColumn(TEST_ROW, F.coalesce(F.col(TEST_ROW), F.lit(False)))
