"""Runs requests through the funnel: one at a time, beside the event loop, and with an answer in time in any case.

    submit ▶ admission ▶ a thread completes the run ▶ answer
                              └ overdue: the run is answered from what it holds, a spare thread goes on with the queue

One thread computes: more would only share the core. A spare steps in where a stage hangs, so that one slow call does
not hold up the queue. With all spares hanging, what hangs then holds it up until a spare comes back and takes its
place; until then the engine is stuck, by which its worker turns NOT_SERVING and is ended (serving/workers/).

A run that says that it is brief, as those before it have been, is a turn of the event loop instead: to hand it to a
thread and back costs as much as it does itself.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from contracts.errors import SluiceError
from serving.admission.admission import Admission, Overloaded
from serving.admission.job import Job, Run, Tell, fail, succeed, tell_loop
from serving.request.deadline import DeadlineExpired
from serving.request.lulls import Lulls
from serving.request.stage_clock import RunningQuantile
from serving.request.work_threads import WorkThread, WorkThreads
from serving.stages.funnel import Funnel

SPARES = 4
SMOOTHING = 0.05  # of the mean time of service
STOPPING_SECONDS = 0.02  # in which a run whose caller has gone comes to a question
GRACE = 0.5  # of the reserve, after which an overdue run is answered for
BRIEF_SECONDS = 0.005  # that the event loop may be held up
log = logging.getLogger("sluice.serving")
Answer = TypeVar("Answer")


class Engine:
    """`submit` belongs to one event loop. `reserve` seconds lie between a run's deadline and the caller's; what runs
    take is told by `clock`. Where none `degrades`, a queue that stands makes no answer simpler."""

    def __init__(
        self, funnel: Funnel, most: int, oldest: float, reserve: float, shares: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic, degrades: bool = True,
    ) -> None:
        self._funnel, self._reserve, self._clock = funnel, reserve, clock
        self._admission, self._lock = Admission(most, oldest, shares, degrades=degrades), threading.Lock()
        self._threads = WorkThreads("funnel")  # at most one that is busy and SPARES that hang
        self._busy, self._hanging, self._service = 0, 0, 0.0
        self._unreplaced: Job | None = None  # hangs, and there was no spare for it
        self._moved = clock()  # when a run was last begun or ended
        self.lulls = Lulls()
        self._brief, self._turned = RunningQuantile(), False

    @property
    def waiting(self) -> int:
        return self._admission.waiting

    @property
    def queue_age(self) -> float:
        """Seconds that the oldest of those has waited."""
        with self._lock:
            return self._admission.age

    @property
    def service(self) -> float:
        """Mean seconds of one run."""
        return self._service or self._funnel.whole

    @property
    def free(self) -> bool:
        """Nothing runs and nothing waits."""
        return self._busy == 0 and not self._admission.waiting

    @property
    def stuck(self) -> float:
        """Seconds since the last run was begun or ended while every spare hangs, or the system gives none, and so does
        what runs; else 0."""
        with self._lock:
            alone = self._unreplaced is not None or self._hanging >= SPARES
            return self._clock() - self._moved if alone and self._busy else 0.0

    def refusal(self, tenant: str, remaining: float, least: float) -> str:
        """Why a request with so many seconds of work, `least` those it needs, would wait in vain, or ""."""
        with self._lock:
            return self._admission.refusal(tenant, remaining, least, self.service)

    async def submit(self, run: Run[Answer], tenant: str) -> Answer:
        """Raises Overloaded, DeadlineExpired, and what the run raises. A cancelled caller stops the run."""
        if self.free and not self._turned and self._is_turn(run):
            return self._at_once(run)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def settle(error: SluiceError) -> None:
            loop.call_soon_threadsafe(fail, answer, error)

        job = Job(tenant=tenant, remaining=run.deadline.remaining, refuse=settle, least=run.least, run=run,
                  answer=answer)
        self._enter(job)
        left = run.deadline.remaining()
        timer = None if left == float("inf") else loop.call_later(left + GRACE * self._reserve, self._overdue, job)
        try:
            return await answer
        except asyncio.CancelledError:
            self._abandon(job)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _at_once(self, run: Run[Answer]) -> Answer:
        """In the loop, while nothing runs nor waits, nor will before it ends; once until the loop has looked at its
        callers again. Raises what the run raises."""
        self._turned = True
        asyncio.get_running_loop().call_soon(self._look_again)
        with self._lock:
            self._admission.rested()
            self._count_busy(1)
            self._moved = begun = self._clock()
        try:
            return run.complete()
        finally:
            with self._lock:
                self._took(run, self._clock() - begun)
                self._count_busy(-1)

    def _look_again(self) -> None:
        self._turned = False

    def _is_turn(self, run: Run[Any]) -> bool:
        """Of the event loop: it is done before a thread would have begun."""
        return run.brief and self._brief.value < BRIEF_SECONDS

    def close(self, seconds: float | None = None) -> None:
        """Waits for the requests that are being ranked, so long at most."""
        self._threads.close(seconds)

    def _enter(self, job: Job) -> None:
        """Raises Overloaded, and RuntimeError where there is no thread for it."""
        with self._lock:
            if self.free:
                self._admission.rested()
                self._start(job)
                self._count_busy(1)
                self._run(job)
                return
            self._admission.enter(job, self.service)

    def _start(self, job: Job) -> None:
        """In the loop. Raises RuntimeError where there is no thread for it."""
        if self._is_turn(job.run):
            job.answer.get_loop().call_soon(self._turn, job)
        else:
            self._threads.begin(partial(self._work, job))

    def _turn(self, job: Job) -> None:
        """In the loop: this job; what waits has a turn of its own, before which the loop looks at its callers."""
        spent = self._completed(job, lambda settle, answer, found: settle(answer, found))
        with self._lock:
            following = self._next(job, spent)
            while following is not None and not self._handed(following):
                following = self._after(following)
                self._count_busy(-(following is None))

    def _work(self, job: Job, thread: WorkThread) -> None:
        """In a thread: this job, then those that wait, until none does or this thread has been replaced."""
        following: Job | None = job
        while following is not None:
            done, spent = following, self._completed(following, tell_loop)
            with self._lock:
                following = self._next(done, spent)
                if following is None:
                    self._threads.rest(thread)

    def _completed(self, job: Job, tell: Tell) -> float:
        """Seconds that it took."""
        begun = self._clock()
        try:
            found = job.run.complete()
        except BaseException as error:
            tell(fail, job.answer, error)
        else:
            tell(succeed, job.answer, found)
        return self._clock() - begun

    def _next(self, job: Job, spent: float) -> Job | None:
        """Whose turn it is after one that has taken so long; None where nobody waits or a spare goes on."""
        job.finished = True
        self._took(job.run, spent)
        late, self._unreplaced = self._unreplaced, None
        if not job.overdue:
            following = self._after(job)
            self._count_busy(-(following is None))
            return following
        self._hanging -= 1
        if late is None:
            return None
        following = self._after(late)
        self._hangs(late, following)
        return following

    def _took(self, run: Run[Any], spent: float) -> None:
        self._moved = self._clock()
        self._service += SMOOTHING * (spent - self._service) if self._service else spent
        if run.brief:
            self._brief.tell(spent)

    def _after(self, job: Job) -> Job | None:
        """Whose turn it is, once the job has been charged for its own."""
        now = self._clock()
        self._admission.worked(job, now - job.charged_to, self.service)
        job.charged_to = now
        following = self._admission.next()
        assert following is None or isinstance(following, Job)
        if following is not None:
            self._run(following)
        return following

    def _count_busy(self, more: int) -> None:
        self._busy += more
        if self._busy:
            self.lulls.ends()
        else:
            self.lulls.begins()

    def _run(self, job: Job) -> None:
        job.running, job.charged_to = True, self._clock()
        self._moved = job.charged_to
        if job.level and job.run.partial_ok:
            job.run.simplify(job.level)

    def _overdue(self, job: Job) -> None:
        """In the loop, when a run's time is over: it is answered from what it holds, or refused where it only waits."""
        if job.answer.done():
            return
        with self._lock:
            if not job.running:
                self._admission.leave(job)
                fail(job.answer, Overloaded("the queue has eaten the time of the request; send it again later"))
                return
        job.run.deadline.cancel()
        self._replace(job)
        _settle_from(job)

    def _abandon(self, job: Job) -> None:
        """Its caller has gone: it stops at its next question, or is replaced where none comes soon."""
        job.run.deadline.cancel()
        with self._lock:
            self._admission.leave(job)
        if job.running:
            job.answer.get_loop().call_later(STOPPING_SECONDS, self._replace, job)

    def _replace(self, job: Job) -> None:
        """A spare goes on with the queue where the job still occupies its thread; without one the queue waits for the
        first that comes back."""
        with self._lock:
            if job.finished or job.overdue:
                return
            self._unreplaced = job
            if self._hanging >= SPARES:
                return
            following = self._after(job)
            if following is None or self._handed(following):
                self._hangs(job, following)

    def _hangs(self, job: Job, following: Job | None) -> None:
        """Its thread has been replaced, by one that goes on with `following`."""
        job.overdue, self._unreplaced = True, None
        self._hanging += 1
        self._count_busy(-(following is None))

    def _handed(self, job: Job) -> bool:
        """To whoever is to do it; otherwise it is refused."""
        try:
            self._start(job)
        except RuntimeError as error:
            log.error("no thread takes the place of one that hangs (%s): allow the server more of them", error)
            job.finished = True
            fail(job.answer, Overloaded("no thread is free for it; send it again later or elsewhere"))
            return False
        return True


def _settle_from(job: Job) -> None:
    try:
        if not job.run.partial_ok:
            raise DeadlineExpired("a stage overran the time of the request, and it takes no partial answer; send it "
                                  "with more time, or with partial_ok")
        succeed(job.answer, job.run.salvage())
    except Exception as error:
        fail(job.answer, error)
