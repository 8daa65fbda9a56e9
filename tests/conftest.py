"""One session for all tests of a process, of the embedded engine unless SLUICE_SPARK_MASTER names another; properties
are judged by what they say, not by how long they took."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from contracts.config.log import SparkSettings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All modules and tests live to the end: the collector of garbage looks at them neither now nor, a second each
    time, while tests run, nor do forked processes copy their pages."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: or else one process would begin the longest of them when the others have ended."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pipelines.engine import embedded
    from pipelines.engine.session import open_session, reached
    from tests.pipelines.spark_processes import SMALL_SPARK

    small = {} if reached(SparkSettings()).master == embedded.EMBEDDED else SMALL_SPARK
    session = open_session(SparkSettings(settings=small), "sluice-tests")
    yield session
    embedded.stop(session)
