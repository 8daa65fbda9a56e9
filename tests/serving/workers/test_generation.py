"""Workers of one bundle: none is served before all listen, and whoever dies comes back after a growing pause."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import grpc
import pytest

from serving.server.client import RankingClient
from serving.server.port_takeover import reserved
from serving.workers import generation
from serving.workers.generation import PING_SECONDS, SILENCE, Generation
from serving.workers.listeners import Listeners
from serving.workers.worker_messages import WorkerSettings

CALLERS = 40
LOADING_SECONDS = 90.0


def generation_of(folder: Path, port: int, count: int) -> Generation:
    return Generation("shop-1", settings(folder, port), count, Listeners())


def settings(folder: Path, port: int) -> WorkerSettings:
    return WorkerSettings(folder=folder, host="127.0.0.1", port=port, connection_seconds=2)


def until(condition: Callable[[], object], step: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        step()
        time.sleep(0.02)


def test_a_folder_that_is_no_bundle_is_never_served(tmp_path: Path) -> None:
    made, why = generation_of(tmp_path, 0, 1), list[str]()
    until(lambda: any(why), lambda: why.append(made.advance()))
    assert "is no bundle" in why[-1]
    assert not made.serving
    made.kill()


class Doomed:
    """Loads for longer than a minute, and dies before it serves."""

    def __init__(self, now: list[float]) -> None:
        self._now, self.began = now, now[0]
        self.pid, self.end, self.loaded, self.told_to_listen, self.ready, self.ready_at = 1, "killed", 0, 0, 0, math.inf
        self.heard = now[0]

    @property
    def alive(self) -> bool:
        return self._now[0] < self.began + LOADING_SECONDS

    def kill(self) -> None:
        """It is dead."""


def test_time_that_loading_takes_is_no_health(monkeypatch: pytest.MonkeyPatch) -> None:
    """So pauses go on growing."""
    now = [0.0]
    monkeypatch.setattr(generation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(generation, "WorkerProcess", lambda *_: Doomed(now))
    made, began = generation_of(Path("bundle"), 0, 1), [0.0]
    made.advance()
    while len(began) < 6:
        now[0] += 0.05
        made.tend()
        if made.workers[0].began > began[-1]:
            began.append(made.workers[0].began)
    pauses = [after - before - LOADING_SECONDS for before, after in pairwise(began)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2], abs=0.15)


class Silent(Doomed):
    """Serves, and says nothing."""

    def __init__(self, now: list[float]) -> None:
        super().__init__(now)
        self.loaded = self.told_to_listen = self.ready = 1
        self.heard, self.connections, self.killed_at = now[0], 0, math.inf

    @property
    def alive(self) -> bool:
        return self.killed_at == math.inf

    def ping(self) -> None:
        """Unheard."""

    def kill(self) -> None:
        self.killed_at = min(self.killed_at, self._now[0])


def test_a_supervisor_that_stood_still_takes_its_own_silence_for_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """But that of a worker which it goes on asking for the worker's."""
    now = [0.0]
    monkeypatch.setattr(generation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(generation, "WorkerProcess", lambda *_: Silent(now))
    made = generation_of(Path("bundle"), 0, 1)
    made.advance()
    [worker] = cast(list[Silent], made.workers)
    made.tend()
    now[0] = 30.0
    made.tend()
    assert worker.alive
    while worker.alive:
        now[0] += 0.05
        made.tend(revive=False)
    assert worker.killed_at == pytest.approx(50.0, abs=0.2)


@pytest.mark.parametrize(("beside", "last"), [(True, [2.05, 2.1, 2.15]), (False, [2.05, 2.05, 2.05])])
def test_where_the_system_gives_no_process_it_asks_once_a_second(
    beside: bool, last: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the first one as for others, and at once for the next one after it has got one; what it has, it keeps."""
    now, asked, free = [0.0], list[float](), [False]

    def given(*_: object) -> Doomed:
        asked.append(now[0])
        if not free[0]:
            raise BlockingIOError("Resource temporarily unavailable")
        made = Doomed(now)
        made.loaded = made.told_to_listen = 1
        return made

    monkeypatch.setattr(generation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(generation, "WorkerProcess", given)
    made = Generation("shop-1", settings(Path("bundle"), 0), 3, Listeners(), beside)
    for tick in range(80):
        now[0], free[0] = 0.05 * tick, tick > 30
        with contextlib.suppress(OSError):
            assert made.advance() == ""
    assert asked == pytest.approx([0.0, 1.0, *last], abs=0.12)
    assert len(made.workers) == 3


@pytest.mark.parametrize("fetched", [False, True], ids=["as they came", "compared by who fetched them"])
def test_files_are_compared_by_the_first_that_loads_and_by_those_that_replace_the_dead(
    monkeypatch: pytest.MonkeyPatch, fetched: bool
) -> None:
    now, compared = [0.0], list[bool]()

    def given(told: WorkerSettings, *_: object) -> Doomed:
        compared.append(told.compared)
        made = Doomed(now)
        made.loaded = made.told_to_listen = 1
        made.heard = math.inf
        return made

    monkeypatch.setattr(generation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(generation, "WorkerProcess", given)
    told = settings(Path("bundle"), 0).model_copy(update={"compared": fetched})
    made = Generation("shop-1", told, 3, Listeners(), beside=True)
    for _ in range(3):
        made.advance()
    assert compared == [fetched, True, True]
    while now[0] < LOADING_SECONDS + 10:
        now[0] += 0.5
        made.tend()
    assert len(compared) > 3
    assert not any(compared[3:])


def callers_are_dealt_to_both(made: Generation, port: int) -> None:
    made.workers[0].select((0, 1))
    told = time.monotonic()
    until(lambda: made.workers[0].heard > told + PING_SECONDS, made.tend)  # orders are followed one after the other
    callers = [socket.create_connection(("127.0.0.1", port)) for _ in range(CALLERS)]
    until(lambda: made.connections == CALLERS, made.tend)
    assert all(worker.connections for worker in made.workers)
    for caller in callers:
        caller.close()
    until(lambda: made.connections == 0, made.tend)


@pytest.mark.slow
def test_two_listen_in_their_order_and_the_dead_and_the_silent_are_replaced(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reserved("127.0.0.1", 0) as port:
        made = generation_of(bundle_folder, port, 2)
        until(lambda: made.serving, made.advance)
        assert made.deadline == 5.0  # the longest of the bundle
        callers_are_dealt_to_both(made, port)
        first, second = (worker.pid for worker in made.workers)
        os.kill(first, signal.SIGKILL)
        until(lambda: made.serving and made.workers[0].pid != first, made.tend)
        assert (made.deaths, made.workers[1].pid) == (1, second)
        with RankingClient(f"127.0.0.1:{port}") as client:
            client.wait_ready(20)
            assert client.rank("u01", seconds=5).items
            until(lambda: made.connections == 1, made.tend)
        monkeypatch.setattr(generation, "SILENT_SECONDS", 2.0)
        os.kill(second, signal.SIGSTOP)
        until(lambda: made.serving and made.workers[1].pid != second, made.tend)
        assert made.deaths == 1 + SILENCE
        made.stop()
        with pytest.raises(grpc.FutureTimeoutError), RankingClient(f"127.0.0.1:{port}") as client:
            client.wait_ready(0.5)
