"""What a worker says, beside what others print in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from serving.workers.worker_messages import WorkerReport

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


COUNTS = """
import asyncio, signal, sys, threading, time
from serving.server import port_takeover
from serving.workers import worker

counted, worker.COUNTING = [], float(sys.argv[1])

def connections(port):
    counted.append(threading.current_thread() is threading.main_thread())
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    return len(counted)

async def follow():
    port_takeover.connections = connections
    orders, ended = worker.Orders(worker.Reports(), 0), asyncio.Event()
    orders.loop = asyncio.get_running_loop()
    orders.loop.add_signal_handler(signal.SIGTERM, ended.set)
    orders.start()
    await ended.wait()
    sys.stderr.write(f"by the loop: {sum(counted)}")

asyncio.run(follow())
"""


@pytest.mark.parametrize(("share", "last"), [("inf", 3), ("0.01", 1)])
def test_connections_are_counted_beside_the_loop_and_seldom_where_that_takes_long(share: str, last: int) -> None:
    """Each count takes 0.2 s of a core, which a hundredth of one allows every 20 s."""
    orders = "".join(f'{{"ping":{number}}}\n' for number in (1, 2, 3))
    done = subprocess.run([sys.executable, "-c", COUNTS, share], input=orders, capture_output=True, text=True,
                          check=True, cwd=ROOT)
    reports = [WorkerReport.model_validate_json(line) for line in done.stdout.splitlines()]
    assert [report.pong for report in reports] == [1, 2, 3]
    assert reports[-1].connections == last
    assert "by the loop: 0" in done.stderr


def test_what_others_print_is_no_word_to_the_supervisor() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == '{"pong":1}\n'
    assert "noise" in done.stderr
