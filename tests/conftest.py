"""One Spark session for all tests of a process; properties are judged by what they say, not by how long they took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from contracts.config.log import SparkSettings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

TEST_SETTINGS = SparkSettings(
    master="local[2]",
    settings={
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",  # a test's few rows cost less interpreted than compiled
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # short jobs: compile less; then the code cache is 48 MiB by default, which a whole suite fills
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
    },
)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pipelines.engine.session import open_session

    session = open_session(TEST_SETTINGS, "sluice-tests")
    yield session
    session.stop()
