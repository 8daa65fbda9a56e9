"""A start serves what the source names, or else what was served last; it never waits where it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import BundleError, ReplacedError
from serving.server.port_takeover import reserved
from serving.start.told_to_stop import ToldToStop
from serving.workers import first_start
from serving.workers.bundle_cache import ServedBundle
from serving.workers.bundle_search import BundleSearch
from serving.workers.first_start import first_bundle, first_generation
from serving.workers.generation import Generation
from serving.workers.listeners import Listeners
from serving.workers.worker_messages import WorkerSettings
from tests.serving.workers.bundle_shelf import Shelf

LAST = ServedBundle(version="shop-0", folder=Path("shop-0"))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def asked(shelf: Shelf, last: ServedBundle | None = None) -> ServedBundle | None:
    return first_bundle(BundleSearch(shelf), last, ToldToStop())


def test_what_is_named_is_served_whatever_was_served_last(shelf: Shelf) -> None:
    assert asked(shelf, LAST) == asked(shelf) == ServedBundle(version="shop-1", folder=Path("shop-1"))


@pytest.mark.parametrize("broken", ["error", "broken_store"])
def test_without_the_source_it_is_what_was_served_last(
    shelf: Shelf, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    setattr(shelf, broken, OSError("no route"))
    assert asked(shelf, LAST) == LAST
    assert "the registry cannot be asked (no route): shop-0 is served, as before" in caplog.text
    with pytest.raises(BundleError, match="no route"):
        asked(shelf)


def test_where_another_bundle_lies_there_before_it_is_fetched_it_is_that_one() -> None:
    class Moving(Shelf):
        def fetch(self, version: str) -> Path:
            if version == "shop-1":
                self.version = "shop-2"
                raise ReplacedError("shop-2 lies there by now")
            return super().fetch(version)

    assert asked(Moving()) == ServedBundle(version="shop-2", folder=Path("shop-2"))


def test_of_a_source_that_names_nothing_it_is_what_was_served_last(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.version = None
    assert asked(shelf, LAST) == LAST
    assert "names no such bundle (an alias that is gone, or misspelt): shop-0 is served, as before" in caplog.text
    with pytest.raises(BundleError, match="names no such bundle; register and promote one first"):
        asked(shelf)


def test_a_slow_source_is_not_waited_for_and_its_bundle_comes_later(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "PATIENCE_SECONDS", 0.2)
    shelf.open.clear()
    search = BundleSearch(shelf)
    assert first_bundle(search, LAST, ToldToStop()) == LAST
    assert search.take() is None
    shelf.open.set()
    end = time.monotonic() + 20
    while (found := search.take()) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert found.version == "shop-1"


def test_it_stops_while_it_waits_for_a_source(shelf: Shelf) -> None:
    shelf.open.clear()
    stop = ToldToStop()
    threading.Timer(0.2, stop.set).start()
    assert first_bundle(BundleSearch(shelf), None, stop) is None
    shelf.open.set()


def begin(port: int, begun: list[str]) -> Callable[[ServedBundle], Generation]:
    def made(bundle: ServedBundle) -> Generation:
        begun.append(bundle.version)
        settings = WorkerSettings(folder=bundle.folder, host="127.0.0.1", port=port, connection_seconds=2)
        return Generation(bundle.version, settings, 1, Listeners())

    return made


@pytest.mark.slow
def test_a_bundle_that_cannot_be_loaded_is_refused_for_the_last_one(tmp_path: Path, bundle_folder: Path) -> None:
    """At once, by its worker's word; without another one the start fails with it."""
    bad, good = (ServedBundle(version=name, folder=folder) for name, folder in
                 (("shop-2", tmp_path), ("shop-0", bundle_folder)))
    begun, refused = list[str](), list[str]()
    with reserved("127.0.0.1", 0) as port:
        serving = first_generation(bad, good, begin(port, begun), refused.append, ToldToStop())
        assert serving is not None
        assert (serving.serving, serving.folder) == (True, bundle_folder)
        assert (begun, refused) == (["shop-2", "shop-0"], ["shop-2"])
        serving.stop()
        for last in (None, bad):
            begun.clear()
            with pytest.raises(BundleError, match="is no bundle"):
                first_generation(bad, last, begin(port, begun), refused.append, ToldToStop())
            assert begun == ["shop-2"]


def test_a_worker_that_dies_while_it_loads_is_begun_again(bundle_folder: Path) -> None:
    """As often as it may, and its files are compared whoever has fetched them; one that is no longer wanted is
    ended."""
    bundle = ServedBundle(version="shop-1", folder=bundle_folder, compared=True)
    begun, compared, stop = list[str](), list[bool](), ToldToStop()
    with reserved("127.0.0.1", 0) as port:
        make = begin(port, begun)

        def dying(one: ServedBundle) -> Generation:
            made = make(one)
            compared.append(one.compared)
            made.advance()
            made.kill()
            return made

        with pytest.raises(BundleError, match="its process ended with -9"):
            first_generation(bundle, None, dying, begun.append, stop)
        assert begun == ["shop-1"] * first_start.STARTS
        assert compared == [True] + [False] * (first_start.STARTS - 1)
        stop.set()
        assert first_generation(bundle, None, make, begun.append, stop) is None
