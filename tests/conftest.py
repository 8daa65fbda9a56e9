"""One session of the embedded engine for all tests of a process; properties are judged by what they say, not by how
long they took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from contracts.config.log import SparkSettings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: or else one process would begin the longest of them when the others have ended."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pipelines.engine import embedded
    from pipelines.engine.session import open_session

    session = open_session(SparkSettings(), "sluice-tests")
    yield session
    embedded.stop(session)
