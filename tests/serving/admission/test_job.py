from __future__ import annotations

import asyncio

from contracts.errors import SluiceError
from serving.admission.admission import Admission
from serving.admission.job import Job
from serving.request.deadline import Deadline


class NamedRun:
    """Answers with its name."""

    brief, partial_ok, least = False, True, 0.0

    def __init__(self, name: str) -> None:
        self.deadline, self._name = Deadline(None), name

    def simplify(self, level: int) -> None:
        pass

    def complete(self) -> str:
        return self._name

    def salvage(self) -> str:
        return self._name


def test_jobs_have_their_turn_as_they_came_and_those_alike_are_two() -> None:
    """A job that leaves the queue takes no other with it."""
    refused = list[SluiceError]()

    async def ask() -> list[str]:
        admission, answer = Admission(4, 1000.0), asyncio.get_running_loop().create_future()
        first, gone, last = (
            Job(tenant="shop", remaining=run.deadline.remaining, refuse=refused.append, run=run, answer=answer)
            for run in map(NamedRun, ("first", "gone", "last")))
        for job in (first, gone, last):
            admission.enter(job, 0.001)
        admission.leave(gone)
        turns = [admission.next(), admission.next()]
        assert turns == [first, last]
        assert admission.next() is None
        assert not any(job.running or job.finished or job.overdue for job in (first, gone, last))
        return [job.run.complete() for job in turns if isinstance(job, Job)]

    assert asyncio.run(ask()) == ["first", "last"]
    assert refused == []
