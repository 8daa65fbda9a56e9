"""A Redis (or Valkey) of one's own on a free port: started, stopped, gone on, killed, started again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contracts.errors import SluiceError

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")
START_SECONDS, LOOK_SECONDS = 20.0, 0.01


def program() -> str:
    """Raises SluiceError where it is not installed."""
    if PROGRAM is None:
        raise SluiceError("redis-server is not installed; `make redis` installs it")
    return PROGRAM


class RedisProcess:
    """`with RedisProcess(folder) as store: ... store.address`. It writes nothing to disk. Raises SluiceError where it
    is not installed, or does not start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.address = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def __enter__(self) -> RedisProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Empty."""
        self._process = subprocess.Popen(
            [program(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
             str(self._folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_SECONDS
        with self.client() as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.ConnectionError:
                    if self._process.poll() is not None or time.monotonic() > end:
                        raise SluiceError(f"redis-server does not answer on port {self.port}") from None
                    time.sleep(LOOK_SECONDS)

    def client(self, seconds: float | None = None) -> redis.Redis:
        """To be closed; it tries once, and waits so long for an answer."""
        return redis.Redis.from_url(self.address, retry=Retry(NoBackoff(), 0), socket_timeout=seconds)

    def stop(self) -> None:
        """It is there and says nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Whether it is stopped or not; what it held is gone."""
        self._process.kill()
        self._process.wait()
