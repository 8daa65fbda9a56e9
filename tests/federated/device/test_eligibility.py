"""A client that is busy begins no round, and ends one that it has begun."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.device.eligibility import always, by_command, require_eligible


def message(number):
    return {"round": np.array(number, np.int64)}


def test_a_round_is_begun_while_the_owner_says_so_and_ended_whatever_he_says():
    asked = []

    def busy():
        asked.append(1)
        return False

    with pytest.raises(ProtocolError, match="takes part in no round now"):
        require_eligible(busy, message(5), {})
    with pytest.raises(ProtocolError, match="takes part in no round now"):
        require_eligible(busy, message(6), message(5))
    assert len(asked) == 2
    require_eligible(busy, message(5), message(5))
    assert len(asked) == 2
    require_eligible(always, message(6), message(5))


def test_a_message_without_its_round_is_told_from_one():
    with pytest.raises(ProtocolError, match="takes part in no round now"):
        require_eligible(lambda: False, {}, message(5))


@pytest.mark.parametrize(("code", "eligible"), [(0, True), (1, False), (3, False)])
def test_a_command_says_it_by_its_end(code, eligible):
    assert by_command(f"{sys.executable} -c 'raise SystemExit({code})'")() is eligible


def test_no_command_is_always_and_one_that_does_not_end_is_no(monkeypatch):
    assert by_command("") is always
    monkeypatch.setattr("federated.device.eligibility.COMMAND_SECONDS", 0.1)
    assert not by_command(f"{sys.executable} -c 'import threading; threading.Event().wait()'")()
