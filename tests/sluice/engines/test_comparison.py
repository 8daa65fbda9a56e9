"""The engines themselves are compared in the slow test; what is said about them in the quick ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contracts.config.config import load
from contracts.errors import ConfigError
from sluice.cli import app
from sluice.engines.comparison import compare_engines, lines, measure_of
from sluice.engines.records import ColumnDifference, EngineComparison, TableComparison

# Time zones change their clocks alike on both engines until 2037 (docs/reference/sql_functions.md).
SUMMER_OF_2136 = "string(hour(from_utc_timestamp(at + INTERVAL 1326 MONTHS, 'Europe/Berlin')))"
CONFIG = """
name = "shop"
[log]
path = "{data}/log"
user_id = "user"
item_id = "item"
event_time = "at"
derive = { weekday = "weekday(at)", shelf = "EXPRESSION" }
[label]
expression = "clicked = 1"
[windows]
statistics = 0.2
train = 0.5
validation = 0.15
test = 0.15
[[fields]]
name = "weekday"
kind = "categorical"
side = "context"
key_type = "int64"
[[fields]]
name = "shelf"
kind = "categorical"
side = "context"
"""


def shop(folder: Path, expression: str) -> Path:
    draw, rows = np.random.default_rng(0), 4_000
    (folder / "log").mkdir(parents=True)
    times = np.datetime64("2026-01-05T00:00:00", "us") + np.arange(rows) * np.timedelta64(200, "s")
    pq.write_table(pa.table({
        "user": draw.integers(0, 30, rows).astype(str), "item": draw.integers(0, 20, rows).astype(str),
        "at": pa.array(times, pa.timestamp("us", "UTC")), "clicked": draw.integers(0, 2, rows),
        "price": draw.normal(0, 3, rows),
    }), folder / "log" / "part.parquet")
    config = folder / "shop.toml"
    config.write_text(CONFIG.replace("EXPRESSION", expression), encoding="utf-8")
    return config


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    config = shop(tmp_path, "user")
    with pytest.raises(ConfigError, match="at least 100 rows"):
        compare_engines(config, load(config), tmp_path, 5, "local[1]")


def test_the_measure_is_the_configured_apache_spark_or_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_SPARK_MASTER", raising=False)
    config = shop(tmp_path, "user")
    loaded = load(config)
    for master, measure in (("embedded", "local[2]"), ("", "local[2]"), ("spark://host:7077", "spark://host:7077")):
        spark = loaded.spark.model_copy(update={"master": master})
        assert measure_of(loaded.model_copy(update={"spark": spark})) == measure


def test_what_differs_is_told_table_by_table() -> None:
    column = ColumnDifference(column="shelf", rows=2, key="7", embedded="'0.1'", spark="'0.10'",
                              expression="log.derive.shelf = 'f(x)'")
    found = EngineComparison(rows=500, spark_master="local[2]", tables=(
        TableComparison(table="ingest/events", rows=500, embedded_hash="a", spark_hash="b", columns=(column,)),
        TableComparison(table="features", rows=500, embedded_hash="c", spark_hash="c", only_spark=0)))
    text = "\n".join(lines(found))
    assert "500 rows of the log, embedded beside local[2]" in text
    assert "DIFFERS ingest/events" in text
    assert "equal   features" in text
    assert "shelf: 2 rows; at 7: '0.1' on embedded, '0.10' on Apache Spark; log.derive.shelf = 'f(x)'" in text


@pytest.mark.slow
@pytest.mark.parametrize(("expression", "code"), [("concat(user, '-', item)", 0), (SUMMER_OF_2136, 3)])
def test_a_configuration_on_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str, code: int) -> None:
    monkeypatch.delenv("SLUICE_SPARK_MASTER", raising=False)
    config = shop(tmp_path, expression)
    command = ["features", str(config), "--data", str(tmp_path), "--compare-engines", "2000", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == code, done.output
    assert "equal   " in done.output
    assert ("log.derive.shelf" in done.output) == bool(code)
    if code == 0:
        assert json.loads(done.output.strip().splitlines()[-1])["rows"] == 2000
