from __future__ import annotations

from pathlib import Path

import pytest
import redis

from benchmarks.freshness import redis_process
from benchmarks.freshness.redis_process import RedisProcess
from contracts.errors import SluiceError
from tests.serving.running_redis import needs_redis


@needs_redis
def test_it_answers_says_nothing_goes_on_and_is_gone(tmp_path: Path) -> None:
    with RedisProcess(tmp_path) as store, store.client(0.2) as client:
        assert client.ping()
        store.stop()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        store.go_on()
        assert client.ping()
        store.kill()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        store.start()
        assert client.ping()


def test_without_a_program_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_process, "PROGRAM", None)
    with pytest.raises(SluiceError, match="make redis"):
        RedisProcess(tmp_path)
