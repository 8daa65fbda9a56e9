from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue import follower as following
from serving.catalogue.change import WITHDRAWN, Change, encoded
from serving.catalogue.change_store import ChangeStore
from serving.catalogue.follower import Follower, turns
from serving.catalogue.fresh_bundle import FreshBundle
from serving.changing_index import changing_index
from serving.request.lulls import Lulls


def withdrawal(item: str) -> Change:
    now = time.time_ns() // 1000
    return Change(item=item, kind="item", version=1, event_time=now, arrived=now, value=encoded(WITHDRAWN))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_was_stored_is_shown_first_and_what_comes_later_too(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    with closing(ChangeStore(tmp_path)) as store:
        store.record([withdrawal("i05")])
        fresh = FreshBundle(loaded, bundle_folder)
        with closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
            follower.catch_up()
            assert (fresh.hidden_items, follower.applied) == (1, 1)
            assert follower.visible_p99 == 0.0
            follower.start()
            store.record([withdrawal("i06"), withdrawal("i07")])
            until(lambda: follower.applied == 3)
            assert fresh.hidden_items == 3
            assert follower.visible_p99 > 0
            assert follower.failure == ""


def test_a_failure_is_told_and_passes(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = FreshBundle(loaded, bundle_folder)
    with closing(ChangeStore(tmp_path)) as store, closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
        with monkeypatch.context() as patch:
            patch.setattr(fresh, "write", lambda changes: dict[str, int]()["x" * 10_000])
            follower.start()
            store.record([withdrawal("i05")])
            until(lambda: "KeyError" in follower.failure)
            assert len(follower.failure) == 200
        until(lambda: follower.applied == 1 and not follower.failure)


def test_a_store_that_was_removed_is_told_in_a_line(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it took before is shown all the same."""
    fresh = FreshBundle(loaded, bundle_folder)
    with closing(ChangeStore(tmp_path)) as store, closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
        store.record([withdrawal("i05")])
        for path in tmp_path.iterdir():
            path.unlink()
        follower.start()
        until(lambda: "catalogue.sqlite was removed" in follower.failure)
        assert follower.applied == 1
    (told,) = [one for one in caplog.records if "not shown" in one.message]
    assert "start the server anew" in told.message
    assert told.exc_info is None


def test_a_measurement_that_fails_is_told_and_tried_again(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture
) -> None:
    fresh = FreshBundle(loaded, bundle_folder)
    recall, failures = fresh.index.recall, [0, 0]
    fresh.index.search(fresh.index.vectors[0], 1)
    monkeypatch.setattr(following, "RECALL_SECONDS", 0.01)
    monkeypatch.setattr(fresh.index, "recall", lambda *asked: 1 / failures.pop() if failures else recall(*asked))
    with closing(ChangeStore(tmp_path)), closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
        follower.start()
        until(lambda: follower.recall == 1.0)
    assert caplog.text.count("the recall of searches is not measured") == 1


def test_a_measurement_waits_no_longer_in_all(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many items there are."""
    waits, fresh = list[float](), FreshBundle(loaded, bundle_folder)

    def wait(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(max(seconds, 0))

    for place, name, value in ((following, "RECALL_SECONDS", 0.0), (following, "MOST_WAIT_SECONDS", 0.1),
                               (changing_index, "SCORED_AT_ONCE", 8)):
        monkeypatch.setattr(place, name, value)
    fresh.index.search(fresh.index.vectors[0], 1)
    with closing(ChangeStore(tmp_path)), closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
        monkeypatch.setattr(follower.lulls, "wait", wait)
        follower.start()
        until(lambda: follower.recall is not None)
        seen = list(waits)
    assert seen[0] == 0.1
    assert len(seen) < len(loaded.items) // 8


@pytest.mark.parametrize("count", [following.TURN + 10, 500])
def test_changes_are_written_in_turns_and_shown_at_once(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """However many there are."""
    fresh, written, hidden = FreshBundle(loaded, bundle_folder), list[int](), list[int]()
    write = fresh.write

    def noted(changes: Sequence[Change]) -> None:
        write(changes)
        written.append(len(changes))
        hidden.append(fresh.hidden_items)

    monkeypatch.setattr(fresh, "write", noted)
    with closing(ChangeStore(tmp_path)) as store, closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
        gone = [loaded.items.key(row) for row in range(3)]
        store.record([withdrawal(item) for item in [*gone, *(f"unknown{n}" for n in range(count - 3))]])
        follower.start()
        until(lambda: follower.applied == count)
    assert sum(written) == count
    assert max(written) <= following.TURN
    assert hidden == [0] * len(written)
    assert fresh.hidden_items == 3


def test_a_turn_has_fewer_changes_where_they_describe_items() -> None:
    described = [replace(withdrawal(f"i{n}"), value="{}") for n in range(100)]
    changes = [withdrawal("i100"), *described, *(withdrawal(f"i{n}") for n in range(101, 200))]
    found = list(turns(changes))
    assert [one for turn in found for one in turn] == changes
    work = [sum(1 if change.withdraws else following.DESCRIPTION for change in turn) for turn in found]
    assert max(work) < following.TURN + following.DESCRIPTION
    assert min(work[:-1]) >= following.TURN
    assert not list(turns([]))


def test_changes_wait_for_a_lull_of_requests_and_not_for_ever(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, lulls = FreshBundle(loaded, bundle_folder), Lulls()
    lulls.ends()
    with closing(ChangeStore(tmp_path)) as store, closing(Follower(fresh, ChangeStore(tmp_path))) as follower:
        follower.lulls = lulls
        follower.start()
        store.record([withdrawal("i05")])
        until(lambda: follower.applied == 1)  # a worker that has no moment without a request shows it all the same
        monkeypatch.setattr(following, "PATIENCE_SECONDS", 60.0)
        store.record([withdrawal("i06")])
        time.sleep(0.3)
        assert follower.applied == 1
        lulls.begins()
        until(lambda: follower.applied == 2)
