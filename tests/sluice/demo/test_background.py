from __future__ import annotations

import threading

import pytest

from contracts.errors import SluiceError
from sluice.demo.background import Background


class Counted(Background):
    def __init__(self):
        super().__init__()
        self.began, self.ended = threading.Event(), False

    def work(self):
        self.began.set()
        self.stop.wait()
        self.ended = True


class Broken(Background):
    def work(self):
        raise ValueError("no store")


def test_it_goes_on_during_the_block_and_has_ended_after_it():
    with Counted() as counted:
        assert counted.began.wait(10)
        assert not counted.ended
    assert counted.ended


def test_what_broke_down_is_told_at_the_end():
    with pytest.raises(SluiceError, match=r"Broken broke down: ValueError\('no store'\)"), Broken():
        pass


def test_the_blocks_own_error_is_the_one_that_is_raised():
    with pytest.raises(KeyError), Broken():
        raise KeyError("mine")
