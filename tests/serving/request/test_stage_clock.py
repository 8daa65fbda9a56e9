from __future__ import annotations

import pytest

from serving.request import stage_clock
from serving.request.deadline import Deadline
from serving.request.stage_clock import WINDOW, RunningQuantile, StageClock


def told(*seconds: float) -> RunningQuantile:
    found = RunningQuantile()
    for one in seconds:
        found.tell(one)
    return found


def test_nothing_told_takes_nothing() -> None:
    assert RunningQuantile().value == 0.0


def test_the_quantile_of_the_last_times() -> None:
    steady = told(*([9.0] * WINDOW), *(n / WINDOW for n in range(WINDOW)), *(n / WINDOW for n in range(8)))
    assert steady.value == pytest.approx(0.9, abs=0.03)


def test_one_hiccup_moves_nothing_and_two_slow_times_do() -> None:
    usual = [0.001] * 40
    assert told(*usual, 0.1).value == 0.001
    assert told(*usual, 0.1, 0.1).value == 0.1
    assert told(*usual, 0.1, 0.1, 0.001).value == 0.001


def test_a_stage_fits_with_what_follows_it() -> None:
    clock = StageClock(["rank", "rerank"])
    for stage, seconds in (("rank", 0.5), ("rerank", 0.25)):
        clock.tell(stage, seconds)
        clock.tell(stage, seconds)
    assert clock.estimate("rank", "rerank") == 0.75
    assert clock.fits("rank", clock.estimate("rerank"), Deadline(0.8))
    assert not clock.fits("rank", clock.estimate("rerank"), Deadline(0.7))
    assert clock.fits("rank", clock.estimate("rerank"), Deadline(None))


def test_a_stage_left_out_is_tried_again_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only where there is any time at all."""
    clock = StageClock(["rank"])
    clock.tell("rank", 5.0)
    clock.tell("rank", 5.0)
    assert not clock.fits("rank", 0.0, Deadline(1.0, watched=True))
    monkeypatch.setattr(stage_clock, "TRY_AGAIN_SECONDS", {True: 0.0, False: 1000.0})
    assert clock.fits("rank", 0.0, Deadline(1.0, watched=True))
    assert not clock.fits("rank", 0.0, Deadline(1.0))
    assert not clock.fits("rank", 2.0, Deadline(1.0, watched=True))
    monkeypatch.setattr(stage_clock, "TRY_AGAIN_SECONDS", {True: 1000.0, False: 1000.0})
    assert not clock.fits("rank", 0.0, Deadline(1.0, watched=True))


def test_what_is_forgotten_takes_nothing() -> None:
    clock = StageClock(["rank"])
    clock.tell("rank", 0.5)
    clock.forget()
    assert clock.estimate("rank") == 0.0
