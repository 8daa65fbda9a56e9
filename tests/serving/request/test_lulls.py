from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from serving.request.lulls import Lulls

LONG = 60.0


def test_a_lull_is_there_until_a_request_ends_it() -> None:
    lulls = Lulls()
    assert lulls.wait(LONG)
    lulls.ends()
    assert not lulls.wait(0.01)
    lulls.begins()
    assert lulls.wait(LONG)


def test_who_waits_hears_of_the_next_lull() -> None:
    lulls, waiting = Lulls(), threading.Event()
    lulls.ends()

    def waited() -> bool:
        waiting.set()
        return lulls.wait(LONG)

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(waited)
        assert waiting.wait(LONG)
        assert not found.done()
        lulls.begins()
        assert found.result(LONG)


def test_without_time_nobody_waits() -> None:
    assert not Lulls().wait(0.0)


def test_turns_begin_one_after_the_other_in_a_lull() -> None:
    lulls, inside = Lulls(), threading.Event()

    def second() -> bool:
        inside.set()
        with lulls.turn(LONG) as in_a_lull:
            return in_a_lull

    with ThreadPoolExecutor(1) as pool:
        with lulls.turn(LONG) as first:
            assert first
            found = pool.submit(second)
            assert inside.wait(LONG)
            assert not found.done()
        assert found.result(LONG)


def test_a_turn_that_has_waited_long_enough_begins_beside_another() -> None:
    lulls = Lulls()
    with lulls.turn(LONG), lulls.turn(0.01) as in_a_lull:
        assert not in_a_lull
    with lulls.turn(LONG) as in_a_lull:
        assert in_a_lull
