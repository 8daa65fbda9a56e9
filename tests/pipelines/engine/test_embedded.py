from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.engine.embedded import (
    CONNECT_MODE,
    EMBEDDED,
    MARK,
    embedded_session,
    is_embedded,
    memory,
    stop,
    variable,
)


@pytest.mark.parametrize(("key", "name"), [
    ("sail.mode", "SAIL_MODE"),
    ("sail.runtime.memory_pool.type", "SAIL_RUNTIME__MEMORY_POOL__TYPE"),
])
def test_settings_become_the_variables_that_the_engine_reads(key: str, name: str) -> None:
    assert variable(key) == name


def test_a_second_session_has_its_own_settings_and_ends_alone(spark: SparkSession) -> None:
    other = embedded_session({MARK: EMBEDDED, "spark.sql.ansi.enabled": "false"})
    assert is_embedded(other)
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    stop(other)
    assert CONNECT_MODE not in os.environ
    os.environ[CONNECT_MODE] = "1"
    assert spark.range(3).count() == 3


def test_a_session_may_be_idle_for_as_long_as_other_work_takes(spark: SparkSession) -> None:
    assert spark.range(3).count() == 3
    assert int(os.environ[variable("sail.spark.session_timeout_secs")]) > 30 * 86_400


def test_the_memory_is_the_machines_or_what_a_container_may_have(tmp_path: Path) -> None:
    machine = memory([])
    files = [tmp_path / name for name in ("v2", "v1", "nowhere")]
    files[0].write_text("max\n")
    files[1].write_text("9223372036854771712\n")
    assert memory(files) == machine
    files[0].write_text("50000000\n")
    assert memory(files) == 50_000_000


SMALL_MEMORY = """
from pyspark.sql import functions as F
from contracts.config.log import SparkSettings
from contracts.errors import SluiceError
from pipelines.engine.session import session
settings = SparkSettings(settings={"sail.runtime.memory_pool.fair.max_size": "60000000"})
try:
    with session(settings, "small") as spark:
        rows = spark.range(1_000_000).withColumn("text", F.concat(F.lit("x" * 90), F.xxhash64("id").cast("string")))
        print("groups", rows.groupBy("text").count().where("count = 1").count())
        other = rows.select(F.col("text").alias("other"), "id")
        print(rows.join(other, "id").agg(F.max("other"), F.max("text")).collect())
except SluiceError as error:
    print(error)
"""


@pytest.mark.slow
def test_an_aggregation_beyond_memory_is_spilled_and_a_join_beyond_it_says_so() -> None:
    """In a process of its own: the server reads its memory where it starts."""
    done = subprocess.run([sys.executable, "-c", SMALL_MEMORY], capture_output=True, text=True, check=True)
    assert "groups 1000000" in done.stdout
    assert "the embedded engine has not enough memory" in done.stdout
    assert "sail.runtime.memory_pool.fair.max_size" in done.stdout
