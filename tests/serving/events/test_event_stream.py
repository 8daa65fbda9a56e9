"""Against a real Redis."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from google.protobuf import json_format
from redis.exceptions import OutOfMemoryError, RedisError

from benchmarks.freshness.redis_process import RedisProcess
from contracts.config.stages import Serve
from contracts.errors import DataError
from serving.events.event_servicer import now_micros
from serving.events.event_store import EventStore
from serving.events.event_stream import MOST_KEPT, REFUSED, STREAM, EventStream, group_of, replay
from serving.proto import sluice_pb2 as pb
from tests.serving.recorded_events import recorded_features
from tests.serving.running_redis import needs_redis

pytestmark = needs_redis
ROOT = Path(__file__).parents[3]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RedisProcess]:
    with RedisProcess(tmp_path) as store:
        yield store


@pytest.fixture
def client(running: RedisProcess) -> Iterator[redis.Redis]:
    with running.client() as found:
        yield found


class Host:
    """A folder of events, and the stream that fills it; `kinds` counts what was told."""

    def __init__(self, folder: Path, client: redis.Redis) -> None:
        self.kinds, self.refused = Counter[str](), Counter[str]()
        self.store = EventStore(folder, recorded_features(), now_micros)
        self.stream = EventStream(client, self.store, recorded_features(), Serve(max_events=7), self.kinds.update,
                                  lambda by, events: self.refused.update({by: events}))

    @property
    def events(self) -> list[str]:
        return [name for (name,) in self.store.connection.execute("SELECT id FROM events ORDER BY seq")]

    def drained(self) -> list[str]:
        """Until nothing new comes; the first turns look for what nobody has acknowledged."""
        while self.stream.turn(0.001) or self.stream.turn(0.001):
            pass
        return self.events


@pytest.fixture
def host(tmp_path: Path, client: redis.Redis) -> Iterator[Host]:
    made = Host(tmp_path / "fresh", client)
    yield made
    made.store.close()


def click(name: str) -> pb.Event:
    return pb.Event(event_id=name, kind=pb.Event.CLICK, user_id="u", item_id="i", request_id=name)


def add(client: redis.Redis, *names: str) -> list[bytes]:
    return [client.xadd(STREAM, {"event": click(name).SerializeToString()}) for name in names]  # type: ignore[misc]


def pending(client: redis.Redis, host: Host) -> int:
    found = client.xpending(STREAM, group_of(host.store.connection))
    return int(found["pending"])  # type: ignore[index]


def test_events_are_recorded_in_their_order_told_and_acknowledged(host: Host, client: redis.Redis) -> None:
    names = [f"c{number}" for number in range(20)]
    add(client, *names)
    assert host.drained() == names
    assert host.kinds == {"click": 20}
    assert pending(client, host) == 0


def test_one_that_comes_twice_or_came_by_a_call_counts_once(host: Host, client: redis.Redis) -> None:
    add(client, "a", "b", "a")
    assert host.drained() == ["a", "b"]
    assert host.kinds == {"click": 2}


def test_json_is_the_same(host: Host, client: redis.Redis) -> None:
    client.xadd(STREAM, {"json": json_format.MessageToJson(click("a"))})
    assert host.drained() == ["a"]


def test_a_column_that_a_later_bundle_reads_is_kept_once_that_has_been_served(
    host: Host, client: redis.Redis, tmp_path: Path
) -> None:
    def add_with_mood(name: str) -> None:
        event = click(name)
        event.columns["mood"].text = "glad"
        client.xadd(STREAM, {"event": event.SerializeToString()})

    add_with_mood("a")
    assert host.drained() == []
    features = recorded_features()
    EventStore(tmp_path / "fresh", features.model_copy(update={"columns": {"mood": "text"}}), now_micros).close()
    add_with_mood("b")
    assert host.drained() == ["b"]
    assert "glad" in host.store.connection.execute("SELECT columns FROM events").fetchone()[0]


def test_the_time_of_an_event_without_one_is_that_of_its_entry(host: Host, client: redis.Redis) -> None:
    client.xadd(STREAM, {"event": click("a").SerializeToString()}, id="1767600000123-0")
    assert host.drained() == ["a"]
    assert host.store.connection.execute("SELECT at FROM events").fetchall() == [(1_767_600_000_123_000,)]


def test_a_host_whose_clock_is_behind_loses_no_event(host: Host, client: redis.Redis) -> None:
    now = time.time_ns() // 1_000_000
    told = click("a")
    told.event_time.FromMilliseconds(now + 60_000)
    client.xadd(STREAM, {"event": told.SerializeToString()}, id=f"{now + 60_000}-0")
    told.event_id = "b"
    told.event_time.FromMilliseconds(now + 120_000)
    client.xadd(STREAM, {"event": told.SerializeToString()}, id=f"{now + 60_001}-0")
    assert host.drained() == ["a"]  # the other is ahead of the store's clock, too
    (at, known), = host.store.connection.execute("SELECT at, known FROM events").fetchall()
    assert at < known < (now + 60_000) * 1000


def test_what_is_refused_is_kept_with_its_reason_and_holds_nothing_up(host: Host, client: redis.Redis) -> None:
    nameless, unlinked = click(""), click("x")
    unlinked.request_id = ""
    wrong = [{"event": nameless.SerializeToString()}, {"event": unlinked.SerializeToString()}, {"event": b"\xff"},
             {"json": "{"}, {"other": "1"}, {"event": b"x" * (2 << 20)}]
    for fields in wrong:
        client.xadd(STREAM, fields)  # type: ignore[arg-type]
    add(client, "good")
    assert host.drained() == ["good"]
    assert pending(client, host) == 0
    kept = client.xrange(REFUSED)
    assert [fields[b"reason"].split()[0] for _, fields in kept][:2] == [b"event_id", b"request_id"]  # type: ignore[union-attr]
    assert host.refused == {"stream": len(wrong)}
    assert kept[0][1][b"reason"].endswith(b"send any text")  # type: ignore[index]
    assert len(kept) == len(wrong)  # type: ignore[arg-type]
    assert len(kept[-1][1][b"event"]) == MOST_KEPT  # type: ignore[index]


def test_why_an_event_is_refused_ends_with_what_to_send(host: Host, client: redis.Redis) -> None:
    shown = click("x")
    shown.kind, shown.position = pb.Event.IMPRESSION, 1
    client.xadd(STREAM, {"event": shown.SerializeToString()})
    assert host.drained() == []
    ((_, fields),) = client.xrange(REFUSED)  # type: ignore[misc]
    assert fields[b"reason"].endswith(b"; send what a click pays")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_reader_killed_before_it_acknowledges_loses_nothing_and_counts_nothing_twice(
    running: RedisProcess, client: redis.Redis, tmp_path: Path, when: str
) -> None:
    names = [f"c{number}" for number in range(30)]
    add(client, *names)
    command = [sys.executable, "-m", "tests.serving.events.killed_reader", running.address, str(tmp_path / "f"), when]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -9
    host = Host(tmp_path / "f", client)
    there, held = host.events, pending(client, host)
    assert held == 30
    assert there == ([] if when == "before" else names)
    assert host.drained() == names
    assert sum(host.kinds.values()) == 30 - len(there)
    assert pending(client, host) == 0
    host.store.close()


def test_every_host_reads_all(host: Host, client: redis.Redis, tmp_path: Path) -> None:
    add(client, "a", "b")
    other = Host(tmp_path / "other", client)
    assert host.drained() == other.drained() == ["a", "b"]
    other.store.close()


def test_a_replay_reads_again_from_an_offset_and_records_what_is_missing(
    host: Host, client: redis.Redis, running: RedisProcess, tmp_path: Path
) -> None:
    ids = add(client, "a", "b", "c", "d")
    host.drained()
    host.store.connection.execute("DELETE FROM events WHERE id IN ('a', 'c')")
    assert replay(tmp_path / "fresh", running.address, ids[1].decode()) == group_of(host.store.connection)
    assert host.drained() == ["b", "d", "c"]
    replay(tmp_path / "fresh", running.address, "0")
    assert host.drained() == ["b", "d", "c", "a"]
    for folder, after in ((tmp_path / "none", "0"), (tmp_path / "fresh", "yesterday")):
        with pytest.raises(DataError):
            replay(folder, running.address, after)


def test_a_stream_that_fails_is_read_on_and_one_that_was_lost_begins_anew(
    host: Host, client: redis.Redis, running: RedisProcess
) -> None:
    add(client, "a")
    host.drained()
    running.kill()
    with pytest.raises(RedisError):
        host.stream.turn(0.001)
    running.start()
    add(client, "b")
    end = time.monotonic() + 60
    while host.events != ["a", "b"]:
        assert time.monotonic() < end
        try:
            host.stream.turn(0.001)
        except RedisError:  # the group is gone, too
            continue


def test_the_log_tells_the_first_refused_event_and_when_they_are_twice_as_many(
    host: Host, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(9):
        client.xadd(STREAM, {"json": "{"})
        host.drained()
    told = [line.split()[0] for line in caplog.messages if "are refused, and kept" in line]
    assert told == ["1", "2", "4", "8"]


def test_a_full_redis_that_keeps_no_refused_entry_holds_no_event_up(
    host: Host, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """The stream was filled before; a server that starts meanwhile reads on, too."""
    host.drained()
    add(client, "a")
    client.xadd(STREAM, {"json": "{"})
    add(client, "b")
    client.config_set("maxmemory", 1)
    with pytest.raises(OutOfMemoryError):
        client.xadd(STREAM, {"event": b"more"})
    assert host.drained() == ["a", "b"]
    assert pending(client, host) == 0
    assert "are refused, and not kept" in caplog.text
    client.config_set("maxmemory", 0)
    add(client, "c")
    client.config_set("maxmemory", 1)
    successor = EventStream(client, host.store, recorded_features(), Serve(), host.kinds.update)
    while successor.turn(0.001) or successor.turn(0.001):
        pass
    assert host.events == ["a", "b", "c"]
    client.config_set("maxmemory", 0)
    client.xadd(STREAM, {"json": "{"})
    host.drained()
    assert client.xlen(REFUSED) == 1


def test_a_full_redis_without_the_hosts_group_says_so(host: Host, client: redis.Redis) -> None:
    client.config_set("maxmemory", 1)
    with pytest.raises(OutOfMemoryError):
        host.stream.turn(0.001)
    client.config_set("maxmemory", 0)
    add(client, "a")
    assert host.drained() == ["a"]


def test_what_the_disk_refuses_is_read_again(
    host: Host, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.drained()
    add(client, "a")
    with monkeypatch.context() as full:
        def refuse(batches: object) -> None:
            raise OSError("disk full")

        full.setattr(host.store, "record", refuse)
        with pytest.raises(OSError, match="disk full"):
            host.stream.turn(0.001)
    assert pending(client, host) == 1
    assert host.drained() == ["a"]
