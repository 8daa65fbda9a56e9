"""A part that has not come is asked for again soon, then ever later, by the functions that messages go through."""

from __future__ import annotations

import inspect
import threading
from types import SimpleNamespace

import pytest
from flwr.supercore.inflatable import inflatable_utils
from flwr.supercore.inflatable.inflatable_utils import ObjectUnavailableError
from flwr.superlink.grid import http_grid
from flwr.supernode import start_client_internal
from flwr.supernode.runtime import run_clientapp

from federated.flower.object_pulls import DEFAULT, FIRST_SECONDS, ask_sooner

FUNCTIONS = (inflatable_utils.pull_objects, inflatable_utils.pull_and_inflate_object_from_tree)


@pytest.fixture
def waits(monkeypatch):
    """Seconds of each wait, of which none is waited."""
    found = []

    class Event(threading.Event):
        def wait(self, timeout=None):
            found.append(timeout)
            return self.is_set()

    for function in FUNCTIONS:
        monkeypatch.setattr(function, "__kwdefaults__", function.__kwdefaults__)
    monkeypatch.setattr(inflatable_utils, "threading", SimpleNamespace(Event=Event, Lock=threading.Lock))
    ask_sooner()
    return found


def test_a_part_is_asked_for_again_soon_and_then_ever_later(waits):
    missing = iter(range(4))

    def pull(name):
        if next(missing, None) is not None:
            raise ObjectUnavailableError(name)
        return b"here"

    assert inflatable_utils.pull_objects(["part"], pull) == {"part": b"here"}
    assert len(waits) == 4
    for number, seconds in enumerate(waits):
        assert 0.8 * FIRST_SECONDS * 2**number <= seconds <= 1.2 * FIRST_SECONDS * 2**number


@pytest.mark.parametrize("module", [http_grid, start_client_internal, run_clientapp])
def test_whoever_asks_leaves_the_first_wait_to_the_default(module):
    source = inspect.getsource(module)
    assert any(f"{function.__name__}(" in source for function in FUNCTIONS)
    assert DEFAULT not in source
