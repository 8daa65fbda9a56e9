"""Whoever is told to stop by a handler of a signal knows it, wherever the handler came in between."""

from __future__ import annotations

import subprocess
import sys
import threading

from serving.start.told_to_stop import ToldToStop

EVERYWHERE = """
import signal, sys
from serving.start.told_to_stop import ToldToStop

stop, handled = ToldToStop(), []

def handler(*_):
    stop.set()
    handled.append(1)

def trace(frame, event, argument):
    frame.f_trace_opcodes = True
    if event == "opcode":
        signal.raise_signal(signal.SIGTERM)
    return trace

signal.signal(signal.SIGTERM, handler)
for wait in (lambda: stop.wait(0.01), stop.set):
    sys.settrace(trace)
    wait()
    sys.settrace(None)
print(len(handled), stop.wait(0.01))
"""


def test_it_is_told_once_and_for_all() -> None:
    stop = ToldToStop()
    assert not stop.wait(0.001)
    threading.Timer(0.05, stop.set).start()
    assert stop.wait(60)
    assert stop.wait(0.001)
    assert stop.wait(0.001)


def test_a_handler_may_tell_it_between_any_two_instructions() -> None:
    """Of waiting, and of being told by another handler."""
    done = subprocess.run((sys.executable, "-c", EVERYWHERE), capture_output=True, text=True, timeout=60, check=True)
    handled, told = done.stdout.split()
    assert int(handled) > 10
    assert told == "True"
