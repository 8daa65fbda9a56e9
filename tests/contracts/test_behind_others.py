from __future__ import annotations

import os
import threading

import pytest

from contracts.behind_others import LOADING_PRIORITY, behind_others
from contracts.errors import SluiceError


def test_loading_steps_back_and_the_process_does_not() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    found = behind_others(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    assert found == max(before, LOADING_PRIORITY)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_what_loading_raises_is_told() -> None:
    def refuse() -> None:
        raise SluiceError("damaged")

    with pytest.raises(SluiceError, match="damaged"):
        behind_others(refuse)
