"""Keeps the port served with the bundle that a source names, and changes bundles without a failed request.

    search ▶ fetch ▶ fresh workers load, check parity, warm up ▶ they take over new connections, all at once ▶ the old
    ones are left by their callers, whose connections are asked to come again, and end

Loading inside the serving processes would stall them. A bundle that cannot be fetched, loaded or verified is refused
and the old one keeps serving; one whose workers keep dying is rolled back. One change at a time: two generations at
most. Nothing here waits: what takes long (registry, download, loading) goes on beside the loop that keeps workers up.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from serving.access.doors import NO_DOORS, Doors
from serving.balancer.balancer import Balancer
from serving.balancer.configuration import BalancerPlan
from serving.server.port_takeover import reserved
from serving.start.told_to_stop import ToldToStop
from serving.workers.bundle_cache import BundleCache, ServedBundle
from serving.workers.bundle_search import BundleSearch, BundleSource, sentence
from serving.workers.first_start import first_bundle, first_generation
from serving.workers.generation import Generation
from serving.workers.levelling import Order, ordered
from serving.workers.listeners import Listeners
from serving.workers.worker_forks import WorkerForks
from serving.workers.worker_messages import WorkerSettings
from serving.workers.worker_process import WorkerProcess

LOOPBACK = "127.0.0.1"
TICK_SECONDS = 0.05
DRAIN_GRACE_SECONDS = 30.0  # longest that requests under way may keep a connection beyond its age
AGE_JITTER = 1.1  # gRPC lets a connection live up to a tenth longer than asked
PROBATION_DEATHS = 3  # per worker
QUIET_SECONDS = 1.1  # without callers, told twice, before workers are ended
ORDER_SECONDS = 0.1  # in which a worker has followed an order
log = logging.getLogger("sluice.serving")


@dataclass(frozen=True)
class SupervisorSettings:
    """`connection_seconds`: how long a caller's connection lives before it is asked to come again; a change of bundles
    takes about so long. `balanced`: callers come to a balancer, and the workers have a port of their own.
    """

    host: str = "127.0.0.1"
    port: int = 0
    answers: Path | None = None
    poll_seconds: float = 5.0
    connection_seconds: float = 30.0
    workers: int = 1
    doors: Doors = NO_DOORS
    fresh: Path | None = None
    user_store: str | None = None
    event_stream: str | None = None
    balanced: bool = False

    @property
    def drain_seconds(self) -> float:
        """How long workers may take to be left by their callers before they are stopped."""
        return AGE_JITTER * self.connection_seconds + DRAIN_GRACE_SECONDS


class Supervisor:
    """Serves what `source` names until it is told to stop; `cache` remembers what was served, None keeps nothing."""

    def __init__(self, source: BundleSource, settings: SupervisorSettings, cache: BundleCache | None = None) -> None:
        self._search, self._settings, self._cache = BundleSearch(source), settings, cache
        self._stop = ToldToStop()
        self._port, self._listeners, self._forks = 0, Listeners(), WorkerForks()
        self._balancer: Balancer | None = None
        self._current: Generation | None = None
        self._coming: Generation | None = None
        self._draining: Generation | None = None
        self._before: ServedBundle | None = None
        self._way_back: ServedBundle | None = None
        self._stopping: threading.Thread | None = None
        self._selected: tuple[tuple[int, ...], ...] | None = None
        self._drain_began = self._quiet_since = 0.0
        self._ending: WorkerProcess | None = None
        self._ending_since = 0.0

    def run(self, on_ready: Callable[[str, int], None]) -> None:
        """Until SIGTERM or SIGINT. Raises SluiceError when the port is taken, or the first bundle cannot be served."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self._stop.set())
        with contextlib.ExitStack() as open_:
            port = open_.enter_context(reserved(self._settings.host, self._settings.port))
            self._port = open_.enter_context(reserved(LOOPBACK, 0)) if self._settings.balanced else port
            open_.enter_context(self._forks)
            open_.enter_context(contextlib.closing(self))
            last = self._cache.last_served() if self._cache else None
            first = first_bundle(self._search, last, self._stop)
            if first is None:
                return
            self._current = first_generation(first, last, self._generation, self._search.refuse, self._stop)
            if self._current is None:
                return
            self._serves(self._current)
            self._balance(port)
            on_ready(self._current.version, port)
            self._watch()

    def close(self) -> None:
        """Stops every worker, all together, and the balancer once they have answered."""
        if self._balancer is not None:
            self._balancer.leave()
        threads = [threading.Thread(target=one.stop) for one in (self._draining, self._coming, self._current) if one]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._balancer is not None:
            self._balancer.close()

    def _balance(self, port: int) -> None:
        """Puts the balancer before the workers, where there is to be one. Raises SluiceError where it cannot listen."""
        settings, current = self._settings, self._current
        assert current is not None
        if settings.balanced:
            doors = settings.doors
            plan = BalancerPlan(settings.host, port, self._port, settings.workers, doors.access is not None, doors.tls)
            self._balancer = Balancer(plan, current.pace, current.deadline)

    def _generation(self, bundle: ServedBundle, beside: bool = False) -> Generation:
        settings = self._settings
        doors = settings.doors.model_copy(update={
            "reflection": settings.doors.reflects(settings.host),
            "tls": None if settings.balanced else settings.doors.tls,
        })
        return Generation(bundle.version, WorkerSettings(
            folder=bundle.folder, host=LOOPBACK if settings.balanced else settings.host, port=self._port,
            connection_seconds=settings.connection_seconds, answers=settings.answers, doors=doors, fresh=settings.fresh,
            user_store=settings.user_store, event_stream=settings.event_stream, balanced=settings.balanced,
            compared=bundle.compared,
        ), settings.workers, self._listeners, beside, self._forks)

    def _watch(self) -> None:
        next_poll = 0.0
        while not self._stop.wait(TICK_SECONDS):
            try:
                self._tick()
                if time.monotonic() >= next_poll and self._current is not None:
                    next_poll = time.monotonic() + self._settings.poll_seconds
                    self._search.begin(self._current.version, self._coming.version if self._coming else "")
            except Exception as error:  # whatever it is, the workers go on, and so does their supervisor
                log.error("the supervisor stumbled and goes on: %s", sentence(error), exc_info=error)

    def _tick(self) -> None:
        current = self._current
        assert current is not None
        self._listeners.update()
        self._forks.tend()
        current.tend()
        self._roll_back(current)
        if self._way_back is not None:
            self._return(self._way_back)
        elif self._draining is not None:
            self._draining.tend(revive=False)
            self._leave(self._draining)
        elif self._coming is not None:
            self._come(self._coming, current)
        elif (found := self._search.take()) is not None and found.version != current.version and found.folder.exists():
            log.info("loading %s beside %s", found.version, current.version)
            self._coming = self._generation(found, beside=True)
        self._spread()
        if self._balancer is not None:
            self._balancer.tend(current.pace, current.deadline)

    def _come(self, coming: Generation, current: Generation) -> None:
        """The fresh workers take over once all of them listen; none does where one cannot."""
        why = coming.advance()
        self._listeners.update()
        if why:
            log.error("refused %s, %s is served on: %s", coming.version, current.version, why)
            self._search.refuse(coming.version)
            self._coming = None
            coming.kill()
        elif coming.serving:
            refused = self._search.is_refused(current.version)  # it is what was rolled back: there is no way back to it
            self._before = None if refused else ServedBundle(version=current.version, folder=current.folder)
            self._coming = None
            self._replace(current, coming)

    def _replace(self, old: Generation, fresh: Generation) -> None:
        """All new connections are the fresh workers', from now on."""
        self._current, self._draining = fresh, old
        self._drain_began, self._quiet_since, self._ending = time.monotonic(), 0.0, None
        self._select(fresh.workers)
        self._serves(fresh)

    def _serves(self, generation: Generation) -> None:
        if self._cache is None:
            return
        try:
            self._cache.remember(ServedBundle(version=generation.version, folder=generation.folder))
        except OSError as error:  # a full disk: what was remembered before stays, and so do all folders
            log.error("%s cannot be kept as what was served last, for a start without the registry: %s",
                      generation.version, sentence(error))
            return
        before = [self._before.folder] if self._before else []
        if not self._search.under_way:  # it may be fetching; what is too much then goes with the next change
            self._cache.clean(generation.folder, *before)

    def _leave(self, old: Generation) -> None:
        """Ends the workers of a generation that nobody calls any more, or that is not left in time."""
        if self._ending is None and not self._is_left(old):
            return
        self._end(old)
        if self._ending is None:
            self._draining = None
            log.info("%s is left by its callers and gone", old.version)

    def _is_left(self, old: Generation) -> bool:
        now, over = time.monotonic(), time.monotonic() > self._drain_began + self._settings.drain_seconds
        if over:
            log.warning("%s still has callers after %.0f s and is stopped", old.version, self._settings.drain_seconds)
            return True
        if old.connections or now < self._drain_began + QUIET_SECONDS:
            self._quiet_since = 0.0
            return False
        self._quiet_since = self._quiet_since or now
        return now >= self._quiet_since + QUIET_SECONDS

    def _end(self, old: Generation) -> None:
        """One worker after the other, a step at a time, so that every number is known throughout: whose number changes
        with an end gets no new connections meanwhile. `_ending` is None again when none is left."""
        assert self._current is not None
        one, now = self._ending, time.monotonic()
        if one is None or not one.alive:
            self._listeners.update()
            self._ending = next_ = self._listeners.last_of(old.workers)
            self._ending_since = now
            if next_ is None:
                old.stop()
            self._select(self._listeners.unmoved(self._current.workers) if next_ else self._current.workers)
        elif now > self._ending_since + ORDER_SECONDS + DRAIN_GRACE_SECONDS:
            one.kill()
        elif now > self._ending_since + ORDER_SECONDS:
            one.terminate()

    def _roll_back(self, current: Generation) -> None:
        """To the bundle before, where the workers of a fresh one keep dying."""
        before, enough = self._before, PROBATION_DEATHS * len(current.workers)
        if before is None or current.proven or self._coming or current.deaths < enough:
            return
        log.error("the workers of %s keep dying; back to %s", current.version, before.version)
        self._search.refuse(current.version)
        self._before, current.deaths = None, 0
        if self._draining is not None and self._draining.version == before.version and self._draining.serving:
            self._replace(current, self._draining)  # they still listen
            return
        self._way_back, self._ending = before, None
        if self._draining is not None:
            self._stopping = threading.Thread(target=self._draining.stop, name="stopping", daemon=True)
            self._stopping.start()

    def _return(self, before: ServedBundle) -> None:
        """Loads the bundle before once what is left of its workers is gone: two generations at most."""
        if self._stopping is not None and self._stopping.is_alive():
            return
        self._draining = self._stopping = None
        self._coming, self._way_back = self._generation(before), None

    def _spread(self) -> None:
        """New connections make up for what some workers have fewer, then go to all in turn."""
        current = self._current
        assert current is not None
        if self._ending is not None:
            return
        told = {worker: worker.connections for worker in current.workers if worker.alive and worker.ready}
        if told:
            self._select(list(told), ordered(told))

    def _select(self, workers: Sequence[WorkerProcess], order: Order[WorkerProcess] = Order([])) -> None:
        """Where no worker lives to be told, it is said again later."""
        assert self._current is not None
        numbers = tuple(sorted(self._listeners.numbers(workers)))
        ahead = tuple(number for worker in order.first for number in self._listeners.numbers([worker]))
        teller = next((worker for worker in self._current.workers if worker.alive and worker.ready), None)
        if self._selected != (numbers, ahead, order.seen) and teller is not None:
            self._selected = numbers, ahead, order.seen
            teller.select(numbers, ahead)
