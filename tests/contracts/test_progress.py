from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from contracts.progress import counted, heard_by, report

Said = list[tuple[str, int, int]]


def test_units_are_reported_when_they_are_done() -> None:
    said: Said = []
    with heard_by(lambda *progress: said.append(progress)):
        for number in counted("days", range(3)):
            assert said == [("days", done, 3) for done in range(number + 1)]
    assert said[-1] == ("days", 3, 3)


def test_work_that_ends_early_does_not_say_that_it_is_done() -> None:
    said: Said = []
    with heard_by(lambda *progress: said.append(progress)):
        for number in counted("days", range(3)):
            if number:
                break
    assert said == [("days", 0, 3), ("days", 1, 3)]


def test_the_nearest_listener_hears_and_nobody_after_it() -> None:
    outer: Said = []
    inner: Said = []
    report("nobody hears this", 1, 2)
    with heard_by(lambda *progress: outer.append(progress)):
        with heard_by(lambda *progress: inner.append(progress)):
            report("inside")
        report("outside", 1, 2)
    report("nobody hears this", 2, 2)
    assert (outer, inner) == ([("outside", 1, 2)], [("inside", 0, 0)])


def test_a_thread_beside_the_work_does_not_speak_in_between() -> None:
    said: Said = []
    with heard_by(lambda *progress: said.append(progress)), ThreadPoolExecutor(1) as beside:
        beside.submit(report, "beside", 1, 2).result()
    assert said == []
