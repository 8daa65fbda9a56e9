"""Whether a client takes part now, as its owner's command says; what it is asked for is in the round's own tests."""

from __future__ import annotations

import sys

import pytest

from federated.device.eligibility import always, by_command


@pytest.mark.parametrize(("code", "eligible"), [(0, True), (1, False), (3, False)])
def test_a_command_says_it_by_its_end(code, eligible):
    assert by_command(f"{sys.executable} -c 'raise SystemExit({code})'")() is eligible


def test_no_command_is_always_and_one_that_does_not_end_is_no(monkeypatch):
    assert by_command("") is always
    monkeypatch.setattr("federated.device.eligibility.COMMAND_SECONDS", 0.1)
    assert not by_command(f"{sys.executable} -c 'import threading; threading.Event().wait()'")()
