from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contracts.features.event_features import EventFeatures
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.counter_snapshots.kept_counters import followed, take_up
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.events.event_store import FILE
from serving.item_counters import counter_follower
from tests.serving import counted_host, random_host
from tests.serving.counted_items import WINDOW
from tests.serving.recorded_events import SECOND, recorded_features, store_at


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_begun_anew_at_any_moment_it_knows_what_it_knew_all_along(
    loaded: LoadedBundle, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, however late, repeated or disordered the events are; so does one that reads all at once."""
    monkeypatch.setattr(counter_follower, "EVENTS", 3)
    said = []
    for anew in (0.0, 0.2):
        host = random_host.Host(tmp_path / str(anew), seed, loaded, anew=anew)
        with closing(host):
            random_host.lived(host, 120)
            host.now += 3 * SECOND
            at_last = [host.candidate(item) for item in random_host.ITEMS]
            host.counters.close()
            host.counters = host.begun()
            assert [host.candidate(item) for item in random_host.ITEMS] == at_last
            said.append((host.said, at_last))
            assert (host.resumed > 8) == bool(anew)
    assert said[0] == said[1]


def test_a_bundle_of_other_groups_and_items_goes_on_from_what_one_before_has_counted(
    loaded: LoadedBundle, tmp_path: Path
) -> None:
    """And knows what it would if it had counted all from the first event."""
    host = random_host.Host(tmp_path, 3, loaded)
    with closing(host):
        random_host.lived(host, 120)
        while host.counters.look():
            pass
        path = host.snapshots.keep(host.counters.holding())
        host.counters.close()
        keys, groups = ["i1", "i3", "i4", "i2"], np.array([1, 0, 1, 1], dtype=np.int32)  # in the order of the keys
        items = FeatureStore(Vocabulary.of(keys, "string"), host.bundle.items.ids, host.bundle.items.dense)
        host.bundle = replace(host.bundle, items=items, groups={"of_kind": groups})
        said = []
        for resumed in (path, None):
            host.counters = host.begun()
            assert take_up(host.counters, host.snapshots) == resumed
            while host.counters.look():
                pass
            said.append([host.candidate(row) for row in random_host.ITEMS])  # by their places
            host.counters.close()
            path.unlink(missing_ok=True)
        host.counters = host.begun()
    assert said[0] == said[1]
    assert any(value for one in said[0] for name, value in one.items() if "of_kind" in name and "count" in name)


class Host(counted_host.Host):
    """Its snapshots, and how a new process begins."""

    def __init__(self, bundle: LoadedBundle, folder: Path) -> None:
        super().__init__(bundle, folder)
        self.snapshots = SnapshotFolder(folder)

    def keep(self) -> Path:
        self.catch_up()
        return self.snapshots.keep(self.follower.holding())

    def begin_anew(self) -> Path | None:
        """The snapshot that it goes on from."""
        self.follower.close()
        self.follower = self.followed()
        found = take_up(self.follower, self.snapshots)
        self.catch_up()
        return found


@pytest.fixture
def host(counted: LoadedBundle, tmp_path: Path) -> Iterator[Host]:
    with closing(Host(counted, tmp_path)) as made:
        yield made


def test_a_start_reads_what_came_after_the_newest_snapshot_alone(host: Host) -> None:
    for times in (1, 2, 4):
        host.show("i01", times)
        newest = host.keep()
    host.show("i02", 8)
    host.store.connection.execute("DELETE FROM events WHERE seq <= 7")
    assert host.begin_anew() == newest
    assert [host.counter(item) for item in ("i01", "i02", "i03")] == [7, 8, 0]
    assert host.follower.state.items == 2
    host.clock.now += WINDOW * SECOND
    host.catch_up()
    assert [host.counter(item) for item in ("i01", "i02")] == [0, 0]


def test_a_damaged_one_is_told_of_in_a_line_and_the_one_before_is_read(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.show("i01", 3)
    before = host.keep()
    host.show("i01", 2)
    newest = host.keep()
    newest.write_bytes(newest.read_bytes()[:-100])
    assert host.begin_anew() == before
    assert host.counter("i01") == 5
    before.write_bytes(b"")
    assert host.begin_anew() is None
    assert host.counter("i01") == 5
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert ["cannot be read" in one for one in warned] == [True, True, True, False]
    assert "counted anew" in warned[-1]
    assert host.follower.state.passed_over == 2


def test_a_damaged_run_leaves_nothing_behind(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.show("i01", 1000)
    path = host.keep()
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 1
    path.write_bytes(bytes(stored))
    assert host.begin_anew() is None
    assert "CRC" in caplog.text
    assert "counted anew" in caplog.text
    assert (host.counter("i01"), host.follower.state.items) == (1000, 1)


def test_of_a_log_that_was_replaced_or_cut_it_is_passed_over(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """The log says what was recorded: what it does not hold does not count."""
    host.show("i01", 3)
    earlier = sqlite3.connect(host.folder / "earlier.db")
    host.store.connection.backup(earlier)
    host.show("i01", 2)
    host.keep()
    host.store.connection.execute("DELETE FROM events WHERE seq > 3")
    assert host.begin_anew() is None
    assert host.counter("i01") == 3
    earlier.backup(host.store.connection)
    host.show("i02", 9)  # has come to the same numbers again
    assert host.begin_anew() is None
    assert [host.counter(item) for item in ("i01", "i02")] == [3, 9]
    assert caplog.text.count("was cut") == 2
    host.keep()
    host.store.close()
    host.follower.close()
    for path in host.folder.glob(f"{FILE}*"):
        path.unlink()
    host.store = store_at(host.folder, host.clock)
    host.clock.now += WINDOW * SECOND
    host.show("i03")
    assert host.begin_anew() is None
    assert [host.counter(item) for item in ("i01", "i02", "i03")] == [0, 0, 1]
    assert "another log" in caplog.text


def test_a_bundle_of_other_items_goes_on_and_one_of_other_definitions_does_not(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.show("i05", 3)
    host.show("new", 2)
    path = host.keep()
    old = host.bundle.items
    keys = ["new", "aaa", *(old.key(row) for row in range(2, len(old)))]  # i05 has another row
    host.bundle = replace(host.bundle, items=FeatureStore(Vocabulary.of(keys, "string"), old.ids, old.dense))
    assert host.begin_anew() == path
    assert [host.counter(item) for item in ("i05", "new", "aaa")] == [3, 2, 0]
    features = recorded_features()
    later = features.model_copy(update={"clicks": features.clicks.model_copy(update={"window": 11})})
    other = counter_follower.CounterFollower(host.bundle, later, lambda: store_at(host.folder, host.clock), host.clock)
    assert take_up(other, host.snapshots) is None
    assert "other definitions" in caplog.text
    other.close()


def test_items_that_have_left_their_windows_take_no_room_after_a_start(host: Host) -> None:
    host.show("gone", 3)
    host.catch_up()
    host.clock.now += 2 * WINDOW * SECOND
    host.show("i01")
    host.keep()
    assert host.begin_anew() is not None
    (held,) = host.follower.holding().keys
    assert held.names() == ["", "i01"]


@pytest.mark.parametrize("features", [None, recorded_features(86_400)])
def test_counters_that_are_not_event_fresh_are_followed_by_nobody(
    counted: LoadedBundle, loaded: LoadedBundle, tmp_path: Path, features: EventFeatures | None
) -> None:
    assert followed(replace(counted, event_features=features), tmp_path) is None
    assert followed(replace(loaded, event_features=recorded_features()), tmp_path) is None  # no network reads one
    found = followed(replace(counted, event_features=recorded_features()), tmp_path)
    assert found is not None
    assert found.follower.state.age is not None
    found.start()
    found.close()
