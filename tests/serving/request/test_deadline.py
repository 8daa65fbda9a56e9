from __future__ import annotations

import time

import pytest

from serving.request.deadline import Cancelled, Deadline


def test_none_never_expires() -> None:
    assert not Deadline(None).expired
    assert Deadline(None).remaining() == float("inf")


def test_time_runs_out_and_stays_out() -> None:
    deadline = Deadline(0.02)
    assert 0 < deadline.remaining() <= 0.02
    time.sleep(0.03)
    assert deadline.expired
    assert deadline.remaining() < 0


def test_no_time_and_time_past_are_expired_at_once() -> None:
    assert Deadline(0.0).expired
    assert Deadline(-1.0).expired


def test_the_reserve_is_not_for_work() -> None:
    assert Deadline(1.0, reserve=0.4).remaining() == pytest.approx(0.6, abs=0.05)
    assert Deadline(1.0, reserve=1.5).expired


def test_a_stage_leaves_time_to_those_behind_it() -> None:
    whole = Deadline(1.0)
    stage = whole.before(0.25, expected=0.4)
    assert stage.remaining() == pytest.approx(whole.remaining() - 0.25, abs=0.01)
    assert not stage.roomy
    assert whole.before(0.25, expected=0.3).roomy
    assert Deadline(None).before(1.0).remaining() == float("inf")


def test_who_has_gone_stops_the_work_of_every_stage() -> None:
    whole = Deadline(None)
    stage = whole.before(0.0)
    stage.checkpoint()
    whole.cancel()
    with pytest.raises(Cancelled):
        stage.checkpoint()
