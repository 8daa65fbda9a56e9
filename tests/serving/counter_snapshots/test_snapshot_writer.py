from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from serving.counter_snapshots import snapshot_writer
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.counter_snapshots.snapshot_writer import (
    EVENTS,
    LEAST_SECONDS,
    LOCK,
    MOST_SECONDS,
    REST,
    SnapshotWriter,
    is_due,
)
from serving.item_counters.counter_standing import HeldCounters
from tests.serving.counted_host import Host


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_writer, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(snapshot_writer, "EVENTS", 1)
    monkeypatch.setattr(snapshot_writer, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(snapshot_writer, "REST", 0.0)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_is_time_by_events_or_by_time_and_never_before_the_cost_is_small() -> None:
    assert is_due(EVENTS, LEAST_SECONDS, 0.0)
    assert not is_due(EVENTS - 1, MOST_SECONDS - 1, 0.0)
    assert is_due(1, MOST_SECONDS, 0.0)
    assert not is_due(0, 10 * MOST_SECONDS, 0.0)
    assert not is_due(EVENTS, LEAST_SECONDS - 1, 0.0)
    assert not is_due(10 * EVENTS, 3 * MOST_SECONDS, 4 * MOST_SECONDS / REST)
    assert not is_due(-EVENTS, MOST_SECONDS, 0.0)  # counted anew, and not as far yet


class Kept(SnapshotFolder):
    """Which events were counted in what is kept."""

    def __init__(self, fresh: Path) -> None:
        super().__init__(fresh)
        self.seen, self.full = list[int](), False

    def keep(self, held: HeldCounters) -> Path:
        if self.full:
            raise OSError(28, "No space left on device")
        self.seen.append(held.standing.seen)
        return super().keep(held)


def locked(folder: SnapshotFolder) -> bool:
    """Whether it is some process's turn."""
    path = folder.path / LOCK
    if not path.exists():
        return False
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_stop_keeps_what_is_new_by_the_one_whose_turn_it_is(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few they are; what another one has kept is not kept again."""
    monkeypatch.setattr(snapshot_writer, "LOOK_SECONDS", 0.01)
    folders = [Kept(tmp_path) for _ in range(4)]
    first, second, third, fourth = (SnapshotWriter(host.follower, folder) for folder in folders)
    host.show("i01", 3)
    host.catch_up()
    first.start()
    until(lambda: locked(folders[0]))
    second.start()
    second.close()
    first.close()
    assert [folder.seen for folder in folders] == [[3], [], [], []]
    third.start()
    until(lambda: locked(folders[2]))
    third.close()
    fourth.start()
    until(lambda: locked(folders[3]))
    host.show("i01")
    host.catch_up()
    fourth.close()
    assert [folder.seen for folder in folders] == [[3], [], [], [4]]


def test_a_stop_before_anybody_s_turn_keeps_what_is_counted(host: Host, tmp_path: Path) -> None:
    """A server that is stopped within a second of its start; of several workers one writes."""
    host.show("i01", 3)
    host.catch_up()
    folders = [Kept(tmp_path), Kept(tmp_path)]
    writers = [SnapshotWriter(host.follower, folder) for folder in folders]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.close()
    assert [seen for folder in folders for seen in folder.seen] == [3]


def test_what_was_kept_by_other_definitions_is_kept_by_these(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_writer, "LOOK_SECONDS", 0.01)
    host.show("i01", 3)
    host.catch_up()
    folder, held = Kept(tmp_path), host.follower.holding()
    folder.keep(held._replace(standing=held.standing._replace(definitions="other")))
    writer = SnapshotWriter(host.follower, folder)
    writer.start()
    until(lambda: locked(folder))
    writer.close()
    assert folder.seen == [3, 3]


@pytest.mark.usefixtures("at_once")
def test_one_process_writes_what_is_new_and_another_goes_on_when_it_ends(host: Host, tmp_path: Path) -> None:
    folders = [Kept(tmp_path), Kept(tmp_path)]
    first, second = (SnapshotWriter(host.follower, folder) for folder in folders)
    host.show("i01", 3)
    host.catch_up()
    first.start()
    until(lambda: folders[0].seen == [3])
    second.start()
    host.show("i01")
    host.catch_up()
    until(lambda: folders[0].seen == [3, 4])
    time.sleep(0.1)
    assert (folders[0].seen, folders[1].seen) == ([3, 4], [])
    first.close()
    host.show("i01")
    host.catch_up()
    until(lambda: folders[1].seen == [5])
    second.close()


@pytest.mark.usefixtures("at_once")
def test_a_full_disk_is_told_once_and_tried_again(host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = Kept(tmp_path)
    writer = SnapshotWriter(host.follower, folder)
    host.show("i01", 3)
    host.catch_up()
    folder.full = True
    with caplog.at_level(logging.ERROR):
        writer.start()
        until(lambda: "No space left" in caplog.text)
        time.sleep(0.1)
        folder.full = False
        until(lambda: folder.seen == [3])
    assert caplog.text.count("cannot be kept") == 1
    writer.close()


def test_nothing_is_written_of_what_was_taken_up(host: Host, tmp_path: Path) -> None:
    host.show("i01", 3)
    host.catch_up()
    folder = Kept(tmp_path)
    writer = SnapshotWriter(host.follower, folder)
    assert not is_due(host.follower.seen - 3, 10 * MOST_SECONDS, 0.0)
    writer.write()
    assert folder.seen == [3]
    writer.close()
