"""The workers that serve one bundle on one port: started together, listening one after the other, kept alive.

Where others serve meanwhile, a fourth of them load at a time, at least one: all at once would take the caches, and the
memory's bandwidth, from those that answer. Files that have just been compared with their checksums, by who fetched them
or by the workers of the first turn, are not compared again. A worker that dies, whose event loop does not answer, or
whose threads all hang, is replaced, after a pause that doubles with every death up to half a minute and is forgotten
after a minute of health.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from serving.workers.listeners import Listeners
from serving.workers.worker_forks import WorkerForks
from serving.workers.worker_messages import WorkerSettings
from serving.workers.worker_process import WorkerProcess

START_SECONDS = 600.0
SILENT_SECONDS = 20.0  # without a pong, while the worker is asked every PING_SECONDS
PING_SECONDS = 0.5
STILL_SECONDS = 2.0  # without a look at the workers: too few have been asked since for their silence to count
SHORTEST_PAUSE, LONGEST_PAUSE, HEALTHY_SECONDS = 0.2, 30.0, 60.0
AGAIN_SECONDS = 1.0  # before another process is asked for where the system has given none
STOP_SECONDS = 15.0
QUARTER = 4  # a coming generation loads in so many turns
SILENCE = 3  # deaths that one worker without an answer counts for
PROBATION_SECONDS = 60.0  # that all its workers have to serve in one go
log = logging.getLogger("sluice.serving")


class Generation:
    """`deaths` counts those since the start; a worker that was silent counts for SILENCE of them. It is `proven` once
    all its workers have served for PROBATION_SECONDS. `beside` others that serve, workers are begun in turns. None is
    begun before it advances."""

    def __init__(
        self, version: str, settings: WorkerSettings, count: int, listeners: Listeners, beside: bool = False,
        forks: WorkerForks | None = None,
    ) -> None:
        self.version, self._listeners, self._forks = version, listeners, forks
        self._settings = settings.model_copy(update={"beside": beside})
        self._count, self._at_once = count, max(count // QUARTER, 1) if beside else count
        self.workers, self.deaths, self.proven = list[WorkerProcess](), 0, False
        self._pauses, self._next_start = [SHORTEST_PAUSE] * count, [0.0] * count
        self._pinged = self._tended = self._next_begin = 0.0

    @property
    def folder(self) -> Path:
        return self._settings.folder

    @property
    def serving(self) -> bool:
        return len(self.workers) == self._count and all(worker.ready and worker.alive for worker in self.workers)

    @property
    def refused(self) -> bool:
        """A worker has said that the bundle cannot be served, and has not just died."""
        return any(worker.refused for worker in self.workers)

    @property
    def connections(self) -> int:
        """As last told."""
        return sum(worker.connections for worker in self.workers if worker.alive)

    @property
    def pace(self) -> float:
        """Seconds by which one more call makes others wait, spread over the workers; 0 before any has told."""
        told = [worker.service for worker in self.workers if worker.alive and worker.service]
        return sum(told) / len(told) ** 2 if told else 0.0

    @property
    def deadline(self) -> float:
        """Seconds that a call without one may take; 0 before any worker has told."""
        return max((worker.deadline for worker in self.workers), default=0.0)

    def advance(self) -> str:
        """Begins them, and lets them listen once all have loaded. Returns why the bundle cannot be served, or "".
        Raises OSError or RuntimeError where the system gives no process; asked for again after AGAIN_SECONDS."""
        for worker in self.workers:
            if not worker.alive:
                return worker.end
            if time.monotonic() > self.workers[-1].began + START_SECONDS:
                return f"it was not ready after {START_SECONDS:.0f} s"
        loading = sum(not worker.loaded for worker in self.workers)
        if len(self.workers) < self._count:
            soon = self._forks is not None and self._forks.coming
            if time.monotonic() >= self._next_begin and not soon:
                self._begin(min(self._at_once - loading, self._count - len(self.workers)))
            return ""
        waiting = [worker for worker in self.workers if not worker.told_to_listen]
        if waiting and not loading:
            self._listeners.begin(waiting[0])
        return ""

    def _begin(self, count: int) -> None:
        self._next_begin = time.monotonic() + AGAIN_SECONDS
        by_another = any(worker.loaded for worker in self.workers)  # a moment ago
        settings = self._settings.model_copy(update={"compared": self._settings.compared or by_another})
        for _ in range(count):
            self.workers.append(WorkerProcess(settings, self._forks))
        self._next_begin = 0.0

    def tend(self, revive: bool = True) -> None:
        """Asks the workers whether they live, and replaces those that do not; without `revive` none begins anew."""
        self._forgive()
        self._ask()
        for place, worker in enumerate(self.workers):
            if worker.alive and time.monotonic() > _patience(worker):
                log.error("worker %d of %s has not answered, or ranked anything, for %.0f s and is ended", worker.pid,
                          self.version, time.monotonic() - worker.heard)
                self.deaths += SILENCE - 1
                worker.kill()
            if not worker.alive and revive:
                self._revive(place)
            elif worker.loaded and not worker.told_to_listen and revive:
                self._listeners.begin(worker)
            elif time.monotonic() > worker.ready_at + HEALTHY_SECONDS:
                self._pauses[place] = SHORTEST_PAUSE
        self.proven = self.proven or (
            self.serving and time.monotonic() > max(worker.ready_at for worker in self.workers) + PROBATION_SECONDS)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """All together."""
        for worker in self.workers:
            worker.terminate()
        end = time.monotonic() + seconds
        for worker in self.workers:
            worker.stop(max(end - time.monotonic(), 0.0))

    def kill(self) -> None:
        for worker in self.workers:
            worker.kill()

    def _forgive(self) -> None:
        """Silence while nobody asked, as this process stood still (SIGSTOP, a paused container, a disk that hangs)."""
        now = time.monotonic()
        if now > self._tended + STILL_SECONDS:
            for worker in self.workers:
                worker.heard = now
        self._tended = now

    def _ask(self) -> None:
        if time.monotonic() > self._pinged + PING_SECONDS:
            self._pinged = time.monotonic()
            for worker in self.workers:
                if worker.ready and worker.alive:
                    worker.ping()

    def _revive(self, place: int) -> None:
        now = time.monotonic()
        if self._next_start[place] == 0.0:
            self._next_start[place] = now + self._pauses[place]
            self._pauses[place] = min(2 * self._pauses[place], LONGEST_PAUSE)
            self.deaths += 1
            log.error("the process %d that serves %s has died (%s); another one is started", self.workers[place].pid,
                      self.version, self.workers[place].end)
        if now >= self._next_start[place]:
            self.workers[place].kill()
            self._next_start[place] = now + self._pauses[place]  # it is tried again then, where none can be had now
            others = any(worker.ready and worker.alive for worker in self.workers)
            anew = self._settings.model_copy(update={"compared": False, "beside": self._settings.beside and others})
            self.workers[place] = WorkerProcess(anew, self._forks)
            self._next_start[place] = 0.0


def _patience(worker: WorkerProcess) -> float:
    """When, by the monotonic clock, there is no more waiting for a word of it."""
    loading = not worker.told_to_listen and not worker.ready
    return worker.began + START_SECONDS if loading else worker.heard + SILENT_SECONDS
