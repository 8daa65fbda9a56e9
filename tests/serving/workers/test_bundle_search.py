"""Another bundle is found beside the loop, whatever the registry and the store do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from contracts.behind_others import LOADING_PRIORITY
from serving.workers import bundle_search
from serving.workers.bundle_cache import ServedBundle
from serving.workers.bundle_search import GIVING_WAY, BundleSearch, sentence
from tests.serving.workers.bundle_shelf import Shelf


def found(search: BundleSearch, served: str = "shop-1", seconds: float = 0.3) -> ServedBundle | None:
    search.begin(served)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if one := search.take():
            return one
        time.sleep(0.01)
    return None


def test_a_search_takes_no_time_from_those_that_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, asked = Shelf(), list[int]()

    def fetch(version: str) -> Path:
        asked.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return Path(version)

    monkeypatch.setattr(shelf, "fetch", fetch)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    left = list[float]()

    @contextmanager
    def leaving(seconds: float) -> Iterator[None]:
        left.append(seconds)
        yield

    monkeypatch.setattr(bundle_search, "what_others_leave", leaving)
    assert found(BundleSearch(shelf), "shop-0", 20)
    assert asked == [max(own, LOADING_PRIORITY)]
    assert left == [GIVING_WAY]
    assert found(BundleSearch(shelf), "", 20)  # nothing is served yet, and this is what is waited for
    assert left == [GIVING_WAY]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_what_is_served_already_is_not_found_and_another_one_is() -> None:
    shelf = Shelf()
    search = BundleSearch(shelf)
    assert found(search) is None
    shelf.version = "shop-2"
    assert found(search) == ServedBundle(version="shop-2", folder=Path("shop-2"))


def test_neither_what_is_served_nor_what_is_coming_is_fetched() -> None:
    shelf = Shelf()
    search = BundleSearch(shelf)
    shelf.broken_store = RuntimeError("it was fetched")
    for shelf.version in ("shop-1", "shop-2"):
        search.begin("shop-1", "shop-2")
        until = time.monotonic() + 20
        while search.under_way:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert search.error is None
        assert not search.is_refused(shelf.version)


def test_who_compares_what_it_fetches_has_it_found_so() -> None:
    shelf = Shelf()
    shelf.compares = True
    assert found(BundleSearch(shelf), "shop-0") == ServedBundle(
        version="shop-1", folder=Path("shop-1"), compared=True)


@pytest.mark.parametrize("error", [RuntimeError(""), KeyError("x"), OSError("disk\nfull"), ValueError()])
def test_whatever_a_registry_raises_is_a_warning(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    shelf.error, search = error, BundleSearch(shelf)
    assert found(search) is None
    assert "the registry cannot be asked" in caplog.text
    shelf.error, shelf.version = None, "shop-2"
    assert found(search) is not None


def test_what_a_store_cannot_give_is_refused_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    shelf.version, shelf.broken_store, search = "shop-2", RuntimeError(""), BundleSearch(shelf)
    assert found(search) is None
    assert "refused shop-2, shop-1 is served on: RuntimeError" in caplog.text
    shelf.broken_store = None
    assert found(search) is None
    shelf.version = "shop-3"
    assert found(search) is not None


def test_what_is_refused_after_it_was_found_is_not_handed_over() -> None:
    shelf = Shelf()
    shelf.version, search = "shop-2", BundleSearch(shelf)
    assert found(search) is not None
    search.begin("shop-1")
    time.sleep(0.1)
    search.refuse("shop-2")
    assert search.take() is None
    assert found(search) is None


def test_what_is_taken_while_a_search_looks_once_more_is_not_refused() -> None:
    """Before whichever of its instructions."""
    before = 0
    while taken_before(before):
        before += 1
    assert before > 10


def taken_before(instruction: int) -> bool:
    """Is there such an instruction?"""
    shelf, own, passed = Shelf(), BundleSearch.begin.__code__.co_filename, 0
    shelf.version, search = "shop-2", BundleSearch(shelf)
    looked(search)

    def step(frame: FrameType, event: str, _: object) -> Any:
        nonlocal passed
        frame.f_trace_opcodes = frame.f_code.co_filename == own
        if event == "opcode":
            if passed == instruction:
                search.take()
            passed += 1
        return step

    threading.settrace(step)
    looked(search)
    threading.settrace(None)  # type: ignore[arg-type]
    assert search.error is None
    return passed > instruction


def test_a_slow_download_holds_up_nobody() -> None:
    shelf = Shelf()
    shelf.version, search = "shop-2", BundleSearch(shelf)
    shelf.open.clear()
    begun = time.monotonic()
    search.begin("shop-1")
    search.begin("shop-1")
    assert search.take() is None
    assert time.monotonic() - begun < 10.0
    shelf.open.set()
    assert found(search) is not None


@pytest.mark.parametrize(("error", "said"), [(ValueError("a\nb"), "a"), (ValueError(), "ValueError")])
def test_a_sentence_for_every_error(error: Exception, said: str) -> None:
    assert sentence(error) == said


def test_what_was_found_and_not_taken_is_let_go_when_the_source_names_it_no_longer() -> None:
    shelf = Shelf()
    shelf.version, search = "shop-2", BundleSearch(shelf)
    looked(search)
    shelf.version = "shop-1"
    looked(search)
    assert search.take() is None
    for version in ("shop-2", "shop-3"):
        shelf.version = version
        looked(search)
    assert search.take() == ServedBundle(version="shop-3", folder=Path("shop-3"))


def looked(search: BundleSearch) -> None:
    search.begin("shop-1")
    end = time.monotonic() + 20
    while search.under_way:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_at_the_start_it_tells_the_error_and_refuses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    shelf.broken_store, search = OSError("full"), BundleSearch(shelf)
    assert found(search, "") is None
    assert search.error is shelf.broken_store
    assert not caplog.text
    shelf.broken_store = None
    assert found(search, "") is not None
    assert search.error is None
