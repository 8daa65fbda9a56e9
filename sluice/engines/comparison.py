"""`sluice features --compare-engines`: one configuration on a part of its log, on both engines, in throw-away folders.

Each engine runs the real command in a process of its own, since a process speaks to one kind of engine at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from contracts.artifacts import WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, DataError
from sluice.engines.column_origin import expression_of
from sluice.engines.log_rows import take_rows
from sluice.engines.records import EngineComparison, TableComparison
from sluice.engines.table_comparison import compare_table

EMBEDDED, MASTER = "embedded", "SLUICE_SPARK_MASTER"
FEWEST = 100


def compare_engines(path: Path, config: Config, data: str | Path | None, rows: int, master: str) -> EngineComparison:
    """`master`: the Apache Spark that is compared with, such as local[2].

    Raises ConfigError for too few rows, DataError where an engine fails, with what it said.
    """
    if rows < FEWEST:
        raise ConfigError(f"--compare-engines {rows}: at least {FEWEST} rows are needed to fill the windows")
    with tempfile.TemporaryDirectory(prefix="sluice-engines-") as scratch:
        folder = Path(scratch)
        taken = take_rows(config.log, config.path(config.log, data), rows, folder / "log")
        small = _small_config(path, folder)
        outs = {engine: _run(small, data, folder / name, engine, taken)
                for name, engine in (("embedded", EMBEDDED), ("spark", master))}
        return EngineComparison(rows=taken, spark_master=master, tables=tuple(tables_of(config, *outs.values())))


def measure_of(config: Config) -> str:
    """The Apache Spark to compare with: the configured one, or a local one of two threads."""
    configured = os.environ.get(MASTER, config.spark.master)
    return configured if configured not in ("", EMBEDDED) else "local[2]"


def _small_config(path: Path, folder: Path) -> Path:
    """The user's file, with the log's path replaced."""
    from sluice.airflow_demo.daily_config import merged, write_toml

    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    return write_toml(folder / "config.toml", merged(raw, {"log": {"path": str(folder / "log")}}))


def _run(config: Path, data: str | Path | None, out: Path, engine: str, rows: int) -> Artifacts:
    command = [sys.executable, "-m", "sluice.cli", "features", str(config), "--out", str(out),
               *(["--data", str(data)] if data else [])]
    done = subprocess.run(command, env={**os.environ, MASTER: engine}, capture_output=True, text=True, check=False)
    if done.returncode:
        sentences = [line for line in done.stderr.splitlines() if line.startswith("sluice: ")]
        said = sentences[-1].removeprefix("sluice: ") if sentences else done.stderr[-500:]
        raise DataError(f"on {rows} rows the engine {engine} fails: {said}; where a window is empty, take more rows")
    return Artifacts(out)


def tables_of(config: Config, embedded: Artifacts, spark: Artifacts) -> list[TableComparison]:
    """What two runs of a configuration left, in the order in which it is made: the first that differs is where it
    begins."""
    folders = {"ingest/events": "events", "ingest/users": "users", "ingest/items": "items", "quarantine": "quarantine",
               "drawn": "drawn", "features": "features", "online/users": "online_users", "online/items": "online_items"}
    pairs = [(name, getattr(embedded, place), getattr(spark, place)) for name, place in folders.items()]
    pairs += [(f"examples/{window}", embedded.examples(window), spark.examples(window)) for window in WINDOWS]
    pairs.append(("parity", embedded.parity, spark.parity))
    there = [(name, one, other) for name, one, other in pairs if one.exists() or other.exists()]
    return [compare_table(name, one, other, lambda column: expression_of(config, column)) for name, one, other in there]


def lines(found: EngineComparison) -> list[str]:
    """What the user reads: a line for each table, and one for each column that differs."""
    told = [f"{found.rows} rows of the log, embedded beside {found.spark_master}"]
    for table in found.tables:
        told.append(f"{'equal' if table.equal else 'DIFFERS':8s}{table.table:22s}{table.rows:9d} rows  "
                    f"{table.embedded_hash[:12]}  {table.spark_hash[:12]}")
        if table.only_embedded or table.only_spark:
            told.append(f"    {table.only_embedded} rows on embedded alone, {table.only_spark} on Apache Spark alone")
        told += [f"    {text}" for text in table.types]
        for column in table.columns:
            told.append(f"    {column.column}: {column.rows} rows; at {column.key}: {column.embedded} on embedded, "
                        f"{column.spark} on Apache Spark" + (f"; {column.expression}" if column.expression else ""))
    return told
