from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import Change
from serving.catalogue.fresh_bundle import FreshBundle
from serving.events.event_store import EventStore
from serving.item_counters import counter_follower, pace
from serving.item_counters.counter_state import CounterState
from serving.item_counters.live_columns import LiveColumns
from serving.request.lulls import Lulls
from tests.serving.counted_host import Host
from tests.serving.counted_items import WINDOW
from tests.serving.recorded_events import SECOND, START


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_requests_read_what_was_recorded_and_no_more_once_its_window_has_passed(host: Host) -> None:
    stored = host.counter("i01")
    host.show("i01", 3)
    assert host.counter("i01") == stored
    host.catch_up()
    assert [host.counter(item) for item in ("i01", "i02")] == [3, 0]
    host.clock.now += WINDOW * SECOND
    host.catch_up()
    assert host.counter("i01") == 0


def test_all_is_read_before_any_is_shown_and_then_turn_by_turn(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_follower, "EVENTS", 2)
    stored = host.counter("i01")
    host.show("i01", 3)
    assert host.follower.look()
    assert (host.counter("i01"), host.follower.state) == (stored, CounterState(None, 1, "", waiting=1))
    assert not host.follower.look()
    assert host.counter("i01") == 3
    assert host.follower.state.age == 0
    host.show("i01", 5)
    assert host.follower.look()
    assert host.counter("i01") == 5
    assert host.follower.state.age == pytest.approx(1, abs=1e-3)  # the last that was read was recorded a second ago


def test_every_worker_and_one_that_starts_again_knows_the_same(host: Host) -> None:
    host.show("i01", 2)
    host.catch_up()
    host.clock.now += 2 * WINDOW * SECOND
    host.show("i01", 4)
    other = host.followed()
    for follower in (host.follower, other):
        host.catch_up(follower)
        assert host.counter("i01", follower) == 4
        assert follower.state == CounterState(0, 1, "")
    other.close()


def test_an_item_that_comes_later_has_what_was_shown_of_it_before(counted_folder: Path, tmp_path: Path) -> None:
    fresh = FreshBundle(LoadedBundle.load(counted_folder), counted_folder)
    host = Host(fresh.bundle, tmp_path)
    host.show("new", 2)
    host.catch_up()
    fresh.apply([Change(kind="item", item="new", version=1, event_time=START, arrived=START,
                       value='{"category": "music"}')])
    host.catch_up()
    assert host.counter("new") == 2
    host.show("new", 1)
    host.catch_up()
    assert host.counter("new") == 3
    host.follower.close()


def test_a_store_that_cannot_be_read_is_told_of_and_tried_again(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    newest = EventStore.newest
    monkeypatch.setattr(pace, "LOOK_SECONDS", 0.01)
    host.show("i01", 2)
    host.catch_up()

    def fails(_: EventStore) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(EventStore, "newest", property(fails))
    host.follower.start()
    until(lambda: "disk I/O error" in host.follower.state.failure)
    monkeypatch.setattr(EventStore, "newest", newest)
    host.show("i01")
    until(lambda: host.counter("i01") == 3)
    assert host.follower.state.failure == ""
    assert len([one for one in caplog.records if "not counted" in one.message]) == 1


def test_a_store_that_was_removed_is_told_of_once(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """What is counted stays, and windows pass."""
    host.show("i01", 2)
    for path in host.folder.glob("events.db*"):
        path.unlink()
    for _ in range(3):
        host.follower.catch_up()
        assert "was removed" in host.follower.state.failure
    assert host.counter("i01") == 2
    assert len([one for one in caplog.records if "not counted" in one.message]) == 1
    host.clock.now += 2 * WINDOW * SECOND
    host.follower.catch_up()
    assert host.counter("i01") == 0


def test_a_thread_waits_for_a_lull_of_requests_and_no_longer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(pace, "PATIENCE_SECONDS", 0.05)
    host.follower.lulls.ends()
    host.follower.start()
    host.show("i01", 2)
    until(lambda: host.counter("i01") == 2)


class NoLull(Lulls):
    """Requests leave none; how long was waited for one is kept, and nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = list[float]()

    @contextmanager
    def turn(self, seconds: float) -> Iterator[bool]:
        self.waited.append(seconds)
        yield False


def test_a_thread_that_is_behind_has_no_patience_beyond_its_rest(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_follower, "EVENTS", 2)
    monkeypatch.setattr(pace, "REST", 0.0)
    monkeypatch.setattr(pace, "LOOK_SECONDS", 0.0)
    host.follower.lulls = lulls = NoLull()
    host.show("i01", 9)
    host.follower.start()
    until(lambda: len(lulls.waited) > 6)
    assert lulls.waited[:7] == [pace.PATIENCE_SECONDS, 0, 0, 0, 0, pace.PATIENCE_SECONDS, pace.PATIENCE_SECONDS]


def test_what_was_counted_in_part_is_counted_anew(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests have what was shown last until all is, and the failure is told as long."""
    monkeypatch.setattr(counter_follower, "EVENTS", 2)
    host.show("i01", 3)
    host.catch_up()

    def fails(*_: object) -> None:
        raise MemoryError("no room")

    host.show("i02", 2)
    with monkeypatch.context() as patched:
        patched.setattr(LiveColumns, "publish", fails)
        host.catch_up()
    assert host.follower.state == CounterState(1, 0, "MemoryError: no room")  # a second since they were counted
    host.follower.catch_up(0.0)  # a look
    assert [host.counter(item) for item in ("i01", "i02")] == [3, 0]
    assert host.follower.state.failure
    host.catch_up()
    assert [host.counter(item) for item in ("i01", "i02")] == [3, 2]
    assert host.follower.state == CounterState(0, 2, "")


def test_events_that_were_forgotten_are_not_looked_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor by a worker that began when there was nothing."""
    monkeypatch.setattr(counter_follower, "EVENTS", 2)
    assert not host.follower.look()
    host.show("i01", 20)
    host.store.connection.execute("DELETE FROM events WHERE seq < 20")
    other = host.followed()
    for follower in (host.follower, other):
        assert not follower.look()
        assert host.counter("i01", follower) == 1
    other.close()


def test_another_goes_on_from_what_is_held_and_reads_what_came_after(host: Host) -> None:
    """What was there before is not read again: it may be gone. The one that holds it counts on."""
    host.show("i01", 3)
    host.catch_up()
    held = host.follower.holding()
    host.show("i01")
    host.catch_up()
    assert (held.standing.seen, host.follower.seen) == (3, 4)
    host.store.connection.execute("DELETE FROM events WHERE seq <= 3")
    other = host.followed()
    assert other.misfit(held.standing) == ""
    other.resume(held)
    assert (other.seen, other.state) == (3, CounterState(None, 1, ""))
    host.catch_up(other)
    assert host.counter("i01", other) == host.counter("i01") == 4
    other.close()


def test_who_goes_on_after_more_than_a_window_reads_no_more_than_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_follower, "EVENTS", 2)
    host.show("i01", 3)
    host.catch_up()
    held = host.follower.holding()
    host.show("i02", 20)
    host.clock.now += 2 * WINDOW * SECOND
    host.show("i03")
    other = host.followed()
    other.resume(held)
    assert not other.look()
    assert [host.counter(item, other) for item in ("i01", "i02", "i03")] == [0, 0, 1]
    other.close()


def test_what_does_not_fit_is_told_apart(host: Host) -> None:
    host.show("i01", 3)
    host.catch_up()
    kept = host.follower.holding().standing
    assert host.follower.misfit(kept) == ""
    assert "definitions" in host.follower.misfit(kept._replace(definitions="other"))
    assert "another log" in host.follower.misfit(kept._replace(log="other"))
    assert "cut" in host.follower.misfit(kept._replace(seen=4))
    assert "cut" in host.follower.misfit(kept._replace(known=kept.known - 1))
    host.clock.now -= 3600 * SECOND
    assert "clock" in host.follower.misfit(kept)


def test_a_part_of_what_was_held_is_nothing(host: Host) -> None:
    host.show("i01", 3)
    host.catch_up()
    held, other = host.follower.holding(), host.followed()
    with pytest.raises(KeyError):
        other.resume(held._replace(keys=[held.keys[0]._replace(timelines={})]))
    with pytest.raises(ValueError, match="shorter"):
        other.resume(held._replace(keys=[]))
    assert other.seen == 0
    host.catch_up(other)
    assert host.counter("i01", other) == 3
    other.close()
