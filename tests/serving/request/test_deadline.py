from __future__ import annotations

import time

from serving.request.deadline import Deadline


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
