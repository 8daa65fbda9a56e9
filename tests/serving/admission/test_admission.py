"""Laws of the queue, on a clock of their own: nothing here hangs on how fast the machine is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from contracts.errors import SluiceError
from serving.admission.admission import Admission, Overloaded, Waiting
from serving.admission.brown_out import LOOKS, REST, STEP
from serving.admission.standing_queue import INTERVAL, LONGEST

SERVICE, FLOOR = 0.01, 0.002


class Queue:
    """An admission, what became of those who came, and the time."""

    def __init__(
        self, most: int = 8, oldest: float = 10.0, shares: dict[str, float] | None = None, degrades: bool = True
    ) -> None:
        self.now = 100.0
        self.admission = Admission(most, oldest, shares, lambda: self.now, degrades)
        self.refused = list[tuple[str, str]]()

    def come(
        self, tenant: str, number: int = 0, left: float = 10.0, service: float = SERVICE, least: float = FLOOR
    ) -> Waiting:
        def refuse(error: SluiceError) -> None:
            self.refused.append((name, str(error)))

        name, end = f"{tenant}{number}", self.now + left
        one = Waiting(tenant, lambda: end - self.now, refuse, least, self.now)
        self.admission.enter(one, service)
        return one

    def served(self, count: int, seconds: float = SERVICE) -> list[str]:
        """The tenants of the next ones, each of which takes so long."""
        found = []
        for _ in range(count):
            one = self.admission.next()
            if one is not None:
                self.admission.worked(one, seconds)
                found.append(one.tenant)
        return found

    def stand(self, tenant: str) -> None:
        """A queue of one tenant in which everyone has waited too long for an interval; two are left in it."""
        for _ in range(4):
            self.come(tenant, service=0.0)
        self.now += 2 * LONGEST
        assert self.admission.next() is not None
        self.now += INTERVAL
        assert self.admission.next() is not None


def test_the_oldest_tells_the_age_of_the_queue() -> None:
    queue = Queue()
    assert queue.admission.age == 0.0
    queue.come("a")
    queue.now += 2.8
    queue.come("b")
    queue.now += 0.2
    assert queue.admission.age == pytest.approx(3.0)


@pytest.mark.parametrize("waited", [0.0, 2 * LONGEST, 2 * INTERVAL])
def test_first_come_first_served(waited: float) -> None:
    """However long it has lasted: the first of a burst would else wait until the queue is empty."""
    queue = Queue()
    came = [queue.come("a", number) for number in range(3)]
    queue.now += waited
    assert [queue.admission.next() for _ in range(4)] == [*came, None]


def test_who_would_wait_longer_than_it_has_is_refused_at_once() -> None:
    queue = Queue()
    for number in range(5):
        queue.come("a", number)
    with pytest.raises(Overloaded, match="queue alone takes 50 ms"):
        queue.come("a", left=0.05)
    queue.come("a", left=0.06)


def test_who_needs_every_stage_is_refused_sooner() -> None:
    queue = Queue()
    queue.come("a", 1, left=0.05, least=0.02)
    kept = queue.come("a", 2, left=0.05)
    queue.now += 0.035
    assert queue.admission.next() is kept
    assert [name for name, _ in queue.refused] == ["a1"]


def test_a_queue_that_stands_takes_no_more_than_what_need_not_wait_long() -> None:
    queue = Queue()
    queue.stand("a")
    queue.come("a", service=LONGEST / 2)
    with pytest.raises(Overloaded, match="more comes than can be answered, and 300 ms"):
        queue.come("a", service=LONGEST / 2)
    with pytest.raises(Overloaded, match="more comes than can be answered, and 30 ms"):
        queue.come("a", left=0.04)
    queue.come("a", service=LONGEST / 3)


def test_an_empty_queue_stands_no_more() -> None:
    queue = Queue()
    queue.stand("a")
    assert len(queue.served(5)) == 2
    for _ in range(5):
        queue.come("a", service=LONGEST)


def test_the_queue_of_a_flood_stands_and_no_other() -> None:
    queue = Queue()
    queue.stand("flood")
    queue.come("quiet", service=LONGEST)
    queue.come("quiet", service=LONGEST)


def levels(queue: Queue, tenant: str, count: int) -> list[int]:
    """Of so many that come, wait a little, and have their turns."""
    came = [queue.come(tenant, service=0.0) for _ in range(count)]
    while queue.admission.next() is not None:
        pass
    return [one.level for one in came]


def test_while_a_queue_stands_its_answers_are_simpler_and_no_other_tenants() -> None:
    queue = Queue()
    assert levels(queue, "flood", 3) == [0, 0, 0]
    queue.stand("flood")
    assert levels(queue, "flood", 2) == [1, 1]
    assert levels(queue, "quiet", 2) == [0, 0]


def test_who_comes_to_an_empty_queue_is_answered_whole_as_soon_as_the_queue_no_longer_stands() -> None:
    queue = Queue()
    queue.stand("flood")
    assert levels(queue, "flood", 2) == [1, 1]
    assert levels(queue, "flood", 3) == [0, 1, 1]


def test_calls_that_no_simpler_answer_could_help_make_none_simpler() -> None:
    queue = Queue()
    queue.stand("flood")
    for _ in range(LOOKS + 1):
        for _ in range(20):
            with pytest.raises(Overloaded):
                queue.come("flood", left=FLOOR / 2, service=10 * LONGEST)
        queue.now += STEP
        queue.come("flood", service=0.0)
        one = queue.admission.next()
        assert one is not None
        assert one.level == 1


def test_refused_calls_make_them_simpler_still_until_the_queue_has_long_been_gone() -> None:
    queue = Queue()
    queue.stand("flood")
    for look in range(LOOKS):
        for _ in range(20):
            with pytest.raises(Overloaded):
                queue.come("flood", service=10 * LONGEST)
        queue.now += STEP
        queue.come("flood", service=0.0)
        one = queue.admission.next()
        assert one is not None
        assert one.level == (2 if look == LOOKS - 1 else 1)
    assert levels(queue, "flood", 1) == [2]
    queue.now += 2.5 * REST
    assert levels(queue, "flood", 3) == [0, 0, 0]


def test_where_answers_are_to_be_whole_they_are() -> None:
    queue = Queue(degrades=False)
    queue.stand("flood")
    assert levels(queue, "flood", 2) == [0, 0]


def test_a_full_queue_refuses() -> None:
    queue = Queue(most=2)
    queue.come("a", 1)
    queue.come("a", 2)
    with pytest.raises(Overloaded, match="2 requests wait"):
        queue.come("a", 3)


def test_who_has_waited_too_long_is_refused() -> None:
    queue = Queue(oldest=1.0)
    queue.come("a", 1)
    queue.now += 0.9
    queue.come("a", 2)
    queue.now += 0.2
    assert queue.served(2) == ["a"]
    assert [name for name, _ in queue.refused] == ["a1"]


def test_who_has_too_little_left_when_its_turn_comes_is_refused() -> None:
    queue = Queue()
    queue.come("a", 1, left=0.1)
    kept = queue.come("a", 2)
    queue.now += 0.1 - FLOOR / 2
    assert queue.admission.next() is kept
    assert [name for name, _ in queue.refused] == ["a1"]


def test_tenants_take_turns_whatever_they_send() -> None:
    queue = Queue(most=100)
    for number in range(50):
        queue.come("flood", number)
    for number in range(5):
        queue.come("quiet", number)
    assert Counter(queue.served(10)) == {"flood": 5, "quiet": 5}


def test_turns_follow_the_shares() -> None:
    queue = Queue(most=100, shares={"gold": 3.0})
    for number in range(40):
        queue.come("gold", number)
        queue.come("plain", number)
    assert Counter(queue.served(40, seconds=0.75)) == {"gold": 30, "plain": 10}


def test_who_asks_for_more_work_has_fewer_turns() -> None:
    """The queue that it stands in is as long as its work, for itself and for others."""
    queue = Queue(most=100)
    for number in range(40):
        queue.come("heavy", number)
        queue.come("light", number)
    seconds = {"heavy": 0.0, "light": 0.0}
    for _ in range(30):
        one = queue.admission.next()
        assert one is not None
        took = 0.5 if one.tenant == "heavy" else 0.0625
        queue.admission.worked(one, took)
        seconds[one.tenant] += took
    assert abs(seconds["heavy"] - seconds["light"]) <= 0.5
    with pytest.raises(Overloaded, match="queue alone takes"):
        queue.come("heavy", left=5.0)
    queue.come("light", left=5.0)


def test_a_flood_makes_room_in_a_full_queue() -> None:
    queue = Queue(most=4)
    for number in range(4):
        queue.come("flood", number)
    queue.come("quiet", 1)
    assert queue.refused == [("flood3", "others have waited for their share; send it again later or elsewhere")]
    assert queue.admission.waiting == 4
    with pytest.raises(Overloaded):
        queue.come("flood", 9)


def test_a_flood_does_not_make_the_quiet_tenant_look_late() -> None:
    """Its turn comes after one of theirs, however many they are."""
    queue = Queue(most=100)
    for number in range(50):
        queue.come("flood", number)
    queue.come("quiet", left=2 * SERVICE + FLOOR)


def test_who_leaves_has_no_turn() -> None:
    queue = Queue()
    first, second = queue.come("a", 1), queue.come("a", 2)
    queue.admission.leave(first)
    queue.admission.leave(first)
    assert queue.admission.next() is second
    queue.admission.leave(replace(second))
    assert queue.admission.waiting == 0


WHOLE, COSTS = (1.0,) * 4, (1.0, 0.75, 0.6, 0.2)  # of an answer, by level


@dataclass
class Day:
    """What a server that takes `SERVICE` on average, and less where there is no more time, made of Poisson arrivals."""

    load: float
    waits: list[float] = field(default_factory=list)  # from arrival to answer
    cut: int = 0  # for want of time
    came: int = 0
    refused_late: int = 0
    levels: Counter[int] = field(default_factory=Counter)  # of those answered

    @property
    def goodput(self) -> float:
        """Answered, as a share of what came or, above capacity, could be answered."""
        return len(self.waits) / self.came * max(self.load, 1.0)


def day(
    load: float, deadline: float, seconds: float = 30.0, most: int = 64, costs: Sequence[float] = WHOLE
) -> Day:
    """At `load` times the capacity; an answer of level n takes `costs[n]` of a whole one."""
    rng, queue, found = np.random.default_rng(7), Queue(most), Day(load)
    arrivals = queue.now + np.cumsum(rng.exponential(SERVICE / load, round(seconds * load / SERVICE)))
    free_at = queue.now
    while found.came < len(arrivals):
        moment = free_at if queue.admission.waiting else max(free_at, arrivals[found.came])
        for queue.now in arrivals[found.came :][arrivals[found.came :] <= moment]:
            found.came += 1
            with suppress(Overloaded):
                queue.come("a", left=deadline)
        queue.now = moment
        one, service = queue.admission.next(), SERVICE * float(rng.uniform(0.5, 1.5))
        if one is not None:
            service *= costs[one.level]
            free_at = moment + min(service, one.remaining())
            if costs != WHOLE:
                queue.admission.worked(one, free_at - moment)
            found.levels[one.level] += 1
            found.cut += one.remaining() < service
            found.waits.append(free_at - one.since)
    found.refused_late = len(queue.refused)
    return found


def test_below_capacity_all_are_answered_and_the_tail_is_that_of_a_plain_queue() -> None:
    """The mean wait of M/G/1 by Pollaczek and Khinchine, and an exponential tail."""
    load = 0.8
    found = day(load, 5.0)
    mean = SERVICE * load / (1 - load) * (1 + 1 / 12) / 2
    assert found.goodput > 0.99
    assert np.percentile(found.waits, 99) < 1.5 * SERVICE + 1.5 * mean * np.log(100)


@pytest.mark.parametrize("load", [1.5, 2.8, 5.0])
def test_above_capacity_the_server_stays_busy_and_nobody_waits_long_or_in_vain(load: float) -> None:
    found = day(load, 5.0)
    assert found.goodput > 0.97
    settled = found.waits[len(found.waits) // 2 :]
    assert np.percentile(settled, 99) < LONGEST + 6 * SERVICE
    assert found.refused_late == found.cut == 0


@pytest.mark.parametrize("load", [1.5, 2.8, 5.0])
def test_above_capacity_short_deadlines_are_met_by_answers_that_are_mostly_whole(load: float) -> None:
    found = day(load, 6 * SERVICE)
    assert found.goodput > 0.9
    assert found.cut < 0.25 * len(found.waits)
    assert found.refused_late < 0.02 * found.came


def test_below_capacity_every_answer_is_whole() -> None:
    assert day(0.9, 6 * SERVICE, costs=COSTS).levels.keys() == {0}
    assert day(0.9, 5.0, costs=COSTS).levels.keys() == {0}


@pytest.mark.parametrize(("load", "usual"), [(1.2, {0, 1}), (2.8, {2}), (20.0, {3})])
@pytest.mark.parametrize("deadline", [0.2, 1.0])
def test_above_capacity_answers_are_as_much_simpler_as_it_takes(load: float, usual: set[int], deadline: float) -> None:
    """Whole and simpler ones by turns where a few simpler ones are enough, the last level for a flood alone. So many
    more are answered than there could be whole ones."""
    found = day(load, deadline, costs=COSTS)
    assert sum(found.levels[level] for level in usual) > 0.8 * found.levels.total()
    assert found.goodput > 0.9 * min(load, 1 / COSTS[max(usual)])
    assert found.refused_late < 0.01 * found.came
