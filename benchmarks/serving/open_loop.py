"""Callers that do not wait for one another: Poisson arrivals of varied users over several connections.

    python -m benchmarks.serving.open_loop TARGET --rate 200 --seconds 10 --deadline 0.025

Timed from when a request was due, so that a server that stalls is seen to stall. A process of its own; the last line is
one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
from pydantic import BaseModel, ConfigDict

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.translation import to_value

CONNECTIONS, WARM_UP = 8, 20
LINGER = 2.0  # seconds for the last answers
EDGES = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200)  # milliseconds


class LoadFigures(BaseModel):
    """Milliseconds from when a request was due, of those answered; `histogram` counts them by the first of EDGES that
    they do not exceed; `codes` counts gRPC's statuses, `degraded` answers that say so, `answered` per second of the
    stretch, `sent_late_ms` how late the generator itself was (p99), `generator_cores` how much of the machine it has
    taken."""

    model_config = ConfigDict(frozen=True)

    rate: float
    requests: int
    answered: float
    degraded: int
    codes: dict[str, int]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    histogram: dict[str, int]
    sent_late_ms: float
    generator_cores: float = 0.0


@dataclass(slots=True)
class Call:
    due: float
    sent: float = 0.0
    done: float = 0.0
    code: str = ""
    degraded: bool = False


def request(number: int, users: int, values: int, reasons: bool, candidates: int) -> pb.RankRequest:
    """Of the synthetic world; `candidates` items to score, 0 asks for retrieval."""
    asked = pb.RankRequest(user_id=f"u{number % users}", reasons=reasons,
                           context={"context0": to_value(f"v{number % values}")})
    if candidates:
        asked.candidate_list.item_ids.extend(f"i{(number * 7919 + n) % 100_000}" for n in range(candidates))
    return asked


async def offer(chosen: argparse.Namespace) -> LoadFigures:
    channels = [grpc.aio.insecure_channel(chosen.target, options=[("grpc.use_local_subchannel_pool", 1)])
                for _ in range(chosen.connections)]
    stubs = [sluice_pb2_grpc.RankingStub(channel) for channel in channels]
    for number in range(WARM_UP):
        await stubs[number % len(stubs)].Rank(request(number, chosen.users, chosen.values, False, 0), timeout=5)
    begun = time.process_time()
    draw, calls, tasks = np.random.default_rng(chosen.seed), list[Call](), set[asyncio.Task[None]]()
    due = time.monotonic() + 0.1
    end = due + chosen.seconds
    number = 0
    while due < end:
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        call = Call(due)
        calls.append(call)
        asked = request(int(draw.integers(0, 10**9)), chosen.users, chosen.values, chosen.reasons, chosen.candidates)
        task = asyncio.ensure_future(_ask(stubs[number % len(stubs)], asked, chosen.deadline, call))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
        due += float(draw.exponential(1.0 / chosen.rate))
    if tasks:
        await asyncio.wait(tasks, timeout=chosen.deadline + LINGER)
    for channel in channels:
        await channel.close()
    cores = (time.process_time() - begun) / chosen.seconds
    return figures(calls, chosen.rate, chosen.seconds).model_copy(update={"generator_cores": cores})


async def _ask(stub: Any, asked: pb.RankRequest, deadline: float, call: Call) -> None:
    call.sent = time.monotonic()
    try:
        answer = await stub.Rank(asked, timeout=max(deadline - (call.sent - call.due), 0.001))
        call.code, call.degraded = "OK", answer.degraded
    except grpc.aio.AioRpcError as error:
        call.code = error.code().name
    call.done = time.monotonic()


def figures(calls: Sequence[Call], rate: float, seconds: float) -> LoadFigures:
    answered = [call for call in calls if call.code == "OK"]
    spent = np.array([call.done - call.due for call in answered] or [float("nan")]) * 1000
    p50, p95, p99 = np.percentile(spent, (50, 95, 99))
    late = np.array([call.sent - call.due for call in calls if call.sent] or [0.0]) * 1000
    return LoadFigures(
        rate=rate, requests=len(calls), answered=len(answered) / seconds,
        degraded=sum(call.degraded for call in answered), codes=dict(Counter(call.code or "LOST" for call in calls)),
        p50_ms=float(p50), p95_ms=float(p95), p99_ms=float(p99), max_ms=float(spent.max()),
        histogram=histogram(spent),
        sent_late_ms=float(np.percentile(late, 99)),
    )


def histogram(milliseconds: np.ndarray) -> dict[str, int]:
    """Counts by upper edge, without empty ones; "more" is beyond the last."""
    places = np.searchsorted(EDGES, milliseconds[np.isfinite(milliseconds)])
    counts = np.bincount(places, minlength=len(EDGES) + 1).tolist()
    return {name: count for name, count in zip([*map(str, EDGES), "more"], counts, strict=True) if count}


def offered(target: str, rate: float, seconds: float, deadline: float, **more: float | bool) -> LoadFigures:
    """By a generator in a process of its own."""
    options = [f"--{name}={value}" for name, value in more.items() if not isinstance(value, bool)]
    options += [f"--{name}" for name, value in more.items() if value is True]
    command = [sys.executable, "-m", "benchmarks.serving.open_loop", target, f"--rate={rate}", f"--seconds={seconds}",
               f"--deadline={deadline}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return LoadFigures.model_validate_json(done.stdout.splitlines()[-1])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--rate", type=float, required=True, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--deadline", type=float, default=0.1)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--values", type=int, default=1000)
    parser.add_argument("--candidates", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reasons", action="store_true")
    print(json.dumps(asyncio.run(offer(parser.parse_args(argv))).model_dump()))


if __name__ == "__main__":
    main()
