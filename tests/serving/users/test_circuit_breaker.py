from __future__ import annotations

from serving.users.circuit_breaker import LIMIT, UNASKED, CircuitBreaker


def closed() -> CircuitBreaker:
    breaker = CircuitBreaker()
    breaker.looked("")
    return breaker


def test_it_begins_open_and_the_first_look_closes_it() -> None:
    breaker = CircuitBreaker()
    assert breaker.cause == UNASKED
    breaker.looked("")
    assert breaker.cause == ""


def test_failures_in_a_row_open_it_and_others_do_not() -> None:
    breaker = closed()
    for _ in range(3 * LIMIT):
        breaker.failed("late")
        breaker.answered()
    assert breaker.cause == ""
    for _ in range(LIMIT):
        assert breaker.cause == ""
        breaker.failed("late")
    assert (breaker.cause, breaker.failures) == ("late", 4 * LIMIT)


def test_only_a_look_closes_it() -> None:
    breaker = closed()
    for _ in range(LIMIT):
        breaker.failed("late")
    breaker.answered()
    breaker.looked("refused")
    assert breaker.cause == "refused"
    breaker.looked("")
    breaker.failed("late")
    assert breaker.cause == ""
