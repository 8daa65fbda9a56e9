"""Several slates for one requester in one run: the placements choose one after the other, and no item is shown twice.

Each gets an equal part of the time that is left when its turn comes. One that differs from an earlier one in its limit
alone takes its slate from what that one has ranked.
"""

from __future__ import annotations

from dataclasses import replace

from contracts.errors import RequestError
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.query import PageAnswer, PageQuery, RankAnswer, RankQuery
from serving.request.request_check import check_page
from serving.stages.funnel import Funnel
from serving.stages.request_run import RequestRun


class PageRun:
    """`complete` is called once; `salvage` at any time, also by another thread meanwhile.

    Raises RequestError when a query cannot be answered as asked, DeadlineExpired when no time is left at entry.
    """

    brief = False

    def __init__(self, funnel: Funnel, page: PageQuery, deadline: Deadline) -> None:
        self._funnel, self._page, self.deadline = funnel, page, deadline
        check_page(page)
        for number, query in enumerate(page.queries):
            try:
                funnel.check(query, deadline)
            except RequestError as error:
                raise RequestError(f"placements[{number}].{error.field}", error.problem) from None
        self._runs: list[RequestRun] = []
        self._done: list[RankAnswer] = []
        self._level = 0

    @property
    def partial_ok(self) -> bool:
        """As the request says."""
        return self._page.queries[0].partial_ok

    @property
    def least(self) -> float:
        """Seconds of work below which there is no answer."""
        return min(map(self._funnel.stages.least, self._page.queries))

    def simplify(self, level: int) -> None:
        """Before it begins: every slate does without so many stages."""
        self._level = level

    def complete(self) -> PageAnswer:
        """Every slate, each as far as its part of the time allows. Raises what a single run raises."""
        for number in range(len(self._page.queries)):
            run = self._next(number, self._done)
            self._runs.append(run)
            self._done.append(run.complete())
        return PageAnswer(self._page.names, self._done)

    def salvage(self) -> PageAnswer:
        """The slates that are done; of the one under way what is there now, and fallbacks for those behind it. To a
        slate whose described items are not read yet they are unknown. Raises DeadlineExpired where each needs such."""
        done, unread = list(self._done), list[DeadlineExpired]()
        for number in range(len(done), len(self._page.queries)):
            run = self._runs[number] if number < len(self._runs) else self._next(number, done)
            try:
                done.append(run.salvage())
            except DeadlineExpired as error:
                unread.append(error)
                done.append(self._next(number, done, read=False).salvage())
        if len(unread) == len(done):
            raise unread[0]
        return PageAnswer(self._page.names, done)

    def _next(self, number: int, done: list[RankAnswer], read: bool = True) -> RequestRun:
        shown = tuple(item.item for answer in done for item in answer.items)
        query, deadline = replace(self._page.queries[number], shown=shown), self.part(number)
        query = query if read else replace(query, features={})
        run = self._following(query, deadline) or self._funnel.run(query, deadline)
        run.simplify(self._level)
        return run

    def _following(self, query: RankQuery, deadline: Deadline) -> RequestRun | None:
        found = (run.following(query, deadline) for run in reversed(self._runs))
        return next((run for run in found if run is not None), None)

    def part(self, number: int) -> Deadline:
        """What is left, over the slates that are left."""
        left, slates = self.deadline.remaining(), len(self._page.queries) - number
        return self.deadline if left == float("inf") else self.deadline.before(left * (slates - 1) / slates)
