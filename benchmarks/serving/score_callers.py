"""Callers that ask again at once: 200 items to score, over gRPC or as JSON over HTTP with kept connections.

    python -m benchmarks.serving.score_callers grpc 127.0.0.1:50051 --callers 4 --seconds 5 [--by library]

By ready bytes on blocking sockets, the same for both (benchmarks/wire/score_requests.py), or by the libraries that
programs use. A thread for each caller in a process of their own; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.wire.score_requests import BY, GRPC, ITEMS, PATHS, asker
from contracts.errors import SluiceError

CHECKED = 16  # every so many answers are counted item by item, as the first is; of the others the status is looked at


class CallerFigures(BaseModel):
    """Of requests that were answered with a probability for every item; `failed` counts the others. Times are 0 where
    none was."""

    model_config = ConfigDict(frozen=True)

    callers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int


def call(server: str, target: str, chosen: argparse.Namespace, end: float, first: int) -> tuple[list[float], int]:
    """Milliseconds of each request until `end` that was answered, and how many were not."""
    one = asker(server, chosen.by, target, chosen.users, chosen.items)
    spent, failed = list[float](), 0
    with closing(one):
        while (begun := time.perf_counter()) < end:
            number = len(spent) + failed
            answer = one.ask(first + number)
            taken = (time.perf_counter() - begun) * 1000
            if answer is None or (number % CHECKED == 0 and one.scored(answer) != ITEMS):
                failed += 1
            else:
                spent.append(taken)
    return spent, failed


def measured(server: str, target: str, chosen: argparse.Namespace) -> CallerFigures:
    end = time.perf_counter() + chosen.seconds
    with ThreadPoolExecutor(chosen.callers) as callers:
        waiting = [callers.submit(call, server, target, chosen, end, 17 * number) for number in range(chosen.callers)]
        found = [one.result() for one in waiting]
    spent = np.concatenate([times for times, _ in found])
    p50, p99 = np.percentile(spent, (50, 99)) if len(spent) else (0.0, 0.0)
    return CallerFigures(callers=chosen.callers, per_second=len(spent) / chosen.seconds, p50_ms=float(p50),
                         p99_ms=float(p99), failed=sum(failed for _, failed in found))


def figures(
    server: str, target: str, callers: int, seconds: float, users: int, items: int, by: str = BY[0]
) -> CallerFigures:
    """By callers in a process of their own. Raises SluiceError where nothing was answered."""
    command = [sys.executable, "-m", "benchmarks.serving.score_callers", server, target, f"--callers={callers}",
               f"--seconds={seconds}", f"--users={users}", f"--items={items}", f"--by={by}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = CallerFigures.model_validate_json(done.stdout.splitlines()[-1])
    if not found.per_second:
        raise SluiceError(f"{server} answered none of {found.failed} requests of {callers} caller(s)")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", choices=[GRPC, *PATHS])
    parser.add_argument("target")
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--by", choices=BY, default=BY[0])
    chosen = parser.parse_args(argv)
    print(measured(chosen.server, chosen.target, chosen).model_dump_json())


if __name__ == "__main__":
    main()
