from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from pipelines.engine.embedded import CONNECT_MODE, EMBEDDED, MARK, embedded_session, is_embedded, stop, variable


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
