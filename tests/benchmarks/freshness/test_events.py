from __future__ import annotations

from pathlib import Path

from benchmarks.freshness.events import CLICKED, Sender
from benchmarks.freshness.recorded_world import recorded_log
from benchmarks.freshness.redis_process import RedisProcess
from contracts.config.stages import Serve
from serving.events.event_servicer import now_micros
from serving.events.event_store import EventStore
from serving.events.event_stream import EventStream
from tests.serving.running_redis import needs_redis


@needs_redis
def test_what_is_sent_is_recorded_every_fifth_a_click(tmp_path: Path) -> None:
    kinds = list[str]()
    store = EventStore(tmp_path, recorded_log(), now_micros)
    with RedisProcess(tmp_path) as redis, redis.client() as client:
        stream = EventStream(client, store, recorded_log(), Serve(), kinds.extend)
        with Sender(redis, 2000.0) as sender:
            while len(kinds) < 300:
                stream.turn(0.1)
        while stream.turn(0.001):
            pass
    store.close()
    assert len(kinds) == sender.sent
    assert sender.rate > 0
    assert kinds.count("click") == len(kinds) // CLICKED
