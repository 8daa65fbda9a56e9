"""A process beside: pieces in turn, errors as they were, nothing left behind."""

from __future__ import annotations

import operator
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from contracts.errors import ConfigError, RequestError, SluiceError
from sluice.run.side_lane import SideLane, portable


def test_pieces_are_done_in_another_process_which_ends_with_the_block():
    with SideLane() as lane:
        first, second = lane.submit(os.getpid), lane.submit(os.getpid)
        assert first.result() == second.result() != os.getpid()
        lane.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(first.result(), 0)


@pytest.mark.slow
def test_from_the_first_piece_on_threads_are_shared_and_given_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    before = torch.get_num_threads()
    with SideLane(["torch"]) as lane:
        assert torch.get_num_threads() == before
        assert lane.submit(torch.get_num_threads).result() == 2
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before


def test_numpy_s_products_have_half_of_the_threads_as_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")

    def blas() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(4, "blas"):
        before = blas()
        with SideLane() as lane:
            lane.submit(os.getpid)
            assert blas() == {2}
            assert os.environ["OMP_NUM_THREADS"] == "2"
        assert blas() == before
        assert os.environ["OMP_NUM_THREADS"] == "4"


def test_a_piece_that_fails_raises_what_it_raised_and_the_next_goes_on():
    with SideLane() as lane:
        failed, next_one = lane.submit(operator.truediv, 1, 0), lane.submit(operator.add, 1, 2)
        with pytest.raises(ZeroDivisionError):
            failed.result()
        assert next_one.result() == 3
        with pytest.raises(ZeroDivisionError):
            lane.wait()


def test_what_has_not_begun_can_be_taken_back(tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with SideLane() as lane:
        busy, later = lane.submit(Path.read_text, gate), lane.submit(operator.add, 1, 2)
        assert later.cancel()
        gate.write_text("open")
        assert busy.result() == "open"
        lane.wait()


def test_a_process_that_dies_is_told_with_its_exit_code():
    with SideLane() as lane, pytest.raises(SluiceError, match=r"exit code 7 in posix\._exit"):
        lane.submit(os._exit, 7).result()


def test_leaving_by_an_error_ends_what_goes_on():
    lane = SideLane()
    lane.__enter__()
    number = lane.submit(os.getpid).result()
    lane.submit(time.sleep, 600)
    lane.__exit__(KeyError, KeyError(), None)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_an_error_that_pickle_does_not_bring_back_says_the_same():
    assert str(portable(RequestError("user", "unknown"))) == "RequestError: user: unknown"
    given = ConfigError("wrong")
    assert portable(given) is given


def test_an_error_says_where_in_the_process_beside_it_was_raised():
    with SideLane() as lane, pytest.raises(FileNotFoundError) as told:
        lane.submit(Path.read_text, Path("/nowhere")).result()
    assert "in read_text" in "".join(told.value.__notes__)


def test_a_key_that_both_processes_are_told_of_is_answered_by_one():
    with SideLane() as lane:
        number = lane.submit(os.getpid).result()
        os.kill(number, signal.SIGINT)
        assert lane.submit(os.getpid).result() == number


def test_both_have_as_many_threads_so_that_a_result_does_not_hang_on_who_made_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with SideLane(["torch"]) as lane:
        assert lane.submit(torch.get_num_threads).result() == torch.get_num_threads()


def test_threads_are_of_the_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 3, 5, 7}, raising=False)
    with SideLane(["torch"]) as lane:
        assert lane.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2
