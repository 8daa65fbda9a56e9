"""One Spark session for all tests of a process; properties are judged by what they say, not by how long they took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from contracts.config.log import SparkSettings

settings.register_profile("untimed", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=5, phases=[__import__("hypothesis").Phase.explicit, __import__("hypothesis").Phase.generate])
settings.load_profile(__import__("os").environ.get("HYPOTHESIS_PROFILE", "untimed"))

TEST_SETTINGS = SparkSettings()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pipelines.engine.session import open_session

    session = open_session(TEST_SETTINGS, "sluice-tests")
    yield session
    session.stop()
