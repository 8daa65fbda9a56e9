from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest

from contracts.errors import SluiceError
from serving.server.admission import OVERLOADED_SECONDS, Admission, Overloaded, Waiting

SERVICE, FLOOR = 0.01, 0.002


class Queue:
    """An admission and what became of those who came."""

    def __init__(self, most: int = 8, oldest: float = 10.0, shares: dict[str, float] | None = None) -> None:
        self.admission, self.refused = Admission(most, oldest, shares), list[tuple[str, str]]()

    def come(self, tenant: str, number: int = 0, left: float = 10.0, since: float = 0.0) -> Waiting:
        def refuse(error: SluiceError) -> None:
            self.refused.append((name, str(error)))

        name = f"{tenant}{number}"
        one = Waiting(tenant, lambda: left, refuse, time.monotonic() - since)
        self.admission.enter(one, SERVICE, FLOOR)
        return one

    def served(self, count: int) -> list[str]:
        found = [self.admission.next(FLOOR) for _ in range(count)]
        return [one.tenant for one in found if one is not None]


def test_the_oldest_tells_the_age_of_the_queue() -> None:
    queue = Queue()
    assert queue.admission.age == 0.0
    queue.come("a", since=0.2)
    queue.come("b", since=3.0)
    assert queue.admission.age == pytest.approx(3.0, abs=0.5)


def test_first_come_first_served() -> None:
    queue = Queue()
    came = [queue.come("a", number) for number in range(3)]
    assert [queue.admission.next(FLOOR) for _ in range(4)] == [*came, None]


def test_newest_first_once_the_oldest_has_waited_long() -> None:
    queue = Queue()
    came = [queue.come("a", number, since=2 * OVERLOADED_SECONDS) for number in range(3)]
    assert [queue.admission.next(FLOOR) for _ in range(3)] == came[::-1]


def test_who_would_wait_longer_than_it_has_is_refused_at_once() -> None:
    queue = Queue()
    for number in range(5):
        queue.come("a", number)
    with pytest.raises(Overloaded, match="queue alone takes 50 ms"):
        queue.come("a", left=0.05)
    queue.come("a", left=0.06)


def test_a_full_queue_refuses() -> None:
    queue = Queue(most=2)
    queue.come("a", 1)
    queue.come("a", 2)
    with pytest.raises(Overloaded, match="2 requests wait"):
        queue.come("a", 3)


def test_who_has_waited_too_long_is_refused() -> None:
    queue = Queue(oldest=1.0)
    queue.come("a", 1, since=0.9)
    queue.come("a", 2)
    time.sleep(0.15)
    assert queue.served(2) == ["a"]
    assert [name for name, _ in queue.refused] == ["a1"]


def test_who_has_too_little_left_when_its_turn_comes_is_refused() -> None:
    queue = Queue()
    late = queue.come("a", 1)
    late.remaining = lambda: FLOOR / 2
    kept = queue.come("a", 2)
    assert queue.admission.next(FLOOR) is kept
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
    assert Counter(queue.served(40)) == {"gold": 30, "plain": 10}


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
    assert queue.admission.next(FLOOR) is second
    queue.admission.leave(replace(second))
    assert queue.admission.waiting == 0
