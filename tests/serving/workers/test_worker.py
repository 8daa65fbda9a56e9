"""What a worker says, beside what others print in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PRINTS = "import serving.workers.worker as w, sys; r = w.Reports(); print('noise'); r.send(w.WorkerReport(pong=1))"


PONGS = """
import asyncio, signal, sys
from serving.workers.worker import Orders, Reports

async def follow(stuck):
    orders = Orders(Reports(), 0)
    orders.loop, orders.stuck = asyncio.get_running_loop(), lambda: stuck
    ended = asyncio.Event()
    orders.loop.add_signal_handler(signal.SIGTERM, ended.set)
    orders.start()
    await ended.wait()

asyncio.run(follow(float(sys.argv[1])))
"""


@pytest.mark.parametrize(("stuck", "said"), [("0", '{"pong":7}\n'), ("0.5", '{"pong":7}\n'), ("30", "")])
def test_a_worker_whose_threads_all_hang_gives_no_sign_of_life(stuck: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", PONGS, stuck], input='{"ping":7}\n', capture_output=True, text=True,
                          check=True, cwd=ROOT)
    assert done.stdout == said


def test_what_others_print_is_no_word_to_the_supervisor() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == '{"pong":1}\n'
    assert "noise" in done.stderr
