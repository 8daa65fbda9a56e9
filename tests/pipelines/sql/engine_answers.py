"""What an engine answers to SQL expressions over the sample table: types and digests of values, a handful of queries.

    python -m tests.pipelines.sql.engine_answers tests/pipelines/sql/apache_spark.json       (needs Java)

writes Apache Spark's answers to all cases anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

RECORD = Path(__file__).with_name("apache_spark.json")
A_QUERY = 60
_MINUS_ZERO = re.compile(r"(?<![\w.])-0\.0(?![\w.])")


def cases() -> list[str]:
    return users_cases() + own_cases()


def users_cases() -> list[str]:
    """Of what users may write; the embedded engine runs them rewritten."""
    from pipelines.sql.functions import EQUAL
    from pipelines.sql.syntax import SYNTAX

    return list(dict.fromkeys(text for table in (EQUAL, SYNTAX) for texts in table.values() for text in texts))


def own_cases() -> list[str]:
    """Of what the pipelines alone call."""
    from pipelines.sql.own_functions import AGGREGATES, OF_ROWS

    return [text for table in (AGGREGATES, OF_ROWS) for texts in table.values() for text in texts]


def values(spark: Any, table: Path, expressions: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(type, the values as text in the order of `id`) of each expression; -0.0 counts as 0.0, which it equals."""
    from pipelines.sql.own_functions import AGGREGATES

    frame = spark.read.parquet(str(table))
    of_groups = [text for text in expressions if any(text in texts for texts in AGGREGATES.values())]
    plain = [text for text in expressions if not _explodes(text) and text not in of_groups]
    rows, kinds = _of_groups(spark, frame, of_groups)
    found = {text: (kinds[k], _texts(rows.column(k))) for k, text in enumerate(of_groups, 1)}
    for at in range(0, len(plain), A_QUERY):
        some = plain[at:at + A_QUERY]
        rows, kinds = _asked(frame, some)
        found |= {text: (kinds[k], _texts(rows.column(k))) for k, text in enumerate(some, 1)}
    for text in set(expressions) - set(plain) - set(of_groups):
        rows, kinds = _asked(frame, [text])
        columns = [_texts(column) for column in rows.columns]
        found[text] = " ".join(kinds[1:]), sorted(" ".join(values) for values in zip(*columns, strict=True))
    return [found[text] for text in expressions]


def _explodes(text: str) -> bool:
    """Whether it makes rows of its own, in an order that means nothing."""
    return text.startswith(("explode", "posexplode"))


def _of_groups(spark: Any, frame: Any, aggregates: Sequence[str]) -> tuple[Any, list[str]]:
    """As `_asked`, of seven groups of rows in place of rows."""
    if not aggregates:
        return None, []
    frame.createOrReplaceTempView("sample")
    columns = ", ".join(f"{text} AS `c{k}`" for k, text in enumerate(aggregates))
    made = spark.sql(f"SELECT pmod(id, 7) AS __id, {columns} FROM sample GROUP BY pmod(id, 7)")
    return made.toArrow().sort_by("__id"), [field.dataType.simpleString() for field in made.schema.fields]


def _asked(frame: Any, expressions: Sequence[str]) -> tuple[Any, list[str]]:
    """(an Arrow table of `id` and the expressions, in the order of `id`, and the types of its columns)."""
    names = ["(place, value)" if text.startswith("posexplode") else f"`c{k}`" for k, text in enumerate(expressions)]
    made = frame.selectExpr("id AS __id", *[f"{text} AS {name}" for text, name in zip(expressions, names, strict=True)])
    return made.toArrow().sort_by("__id"), [field.dataType.simpleString() for field in made.schema.fields]


def _texts(column: Any) -> list[str]:
    return [_MINUS_ZERO.sub("0.0", repr(value)) for value in column.to_pylist()]


def answers(spark: Any, table: Path, expressions: Sequence[str]) -> list[list[str]]:
    """[type, digest] of each expression."""
    return [[kind, hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]]
            for kind, texts in values(spark, table, expressions)]


def record(target: Path) -> None:
    """Apache Spark's answers to all cases, as JSON: {expression: [type, digest]}."""
    from contracts.config.log import SparkSettings
    from pipelines.engine.session import open_session
    from tests.pipelines.sql.sql_sample import sample

    settings = {"spark.driver.memory": "1g", "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = open_session(SparkSettings(master="local[1]", settings=settings), "sql-cases")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "sample.parquet"
        pq.write_table(sample(), table)
        found = dict(zip(cases(), answers(spark, table, cases()), strict=True))
    spark.stop()
    lines = [f"{json.dumps(text, ensure_ascii=False)}: {json.dumps(answer)}" for text, answer in found.items()]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
