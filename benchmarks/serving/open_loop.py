"""Callers that do not wait for one another: Poisson arrivals of varied users over several connections.

    python -m benchmarks.serving.open_loop TARGET --rate 200 --seconds 10 --deadline 0.025
    python -m benchmarks.serving.open_loop TARGET --callers 8 --seconds 10
    python -m benchmarks.serving.open_loop TARGET --rate 50 --seconds 600 --names FILE --new 0.5 --record FILE

Timed from when a request was due, so that a server that stalls is seen to stall; with --callers each connection asks
again as soon as it is answered. With --new so large a share of the calls come each on a connection of its own; SIGTERM
ends the stretch, and --record keeps every call (.npz: due, done by the monotonic clock, code). A process of its own,
which takes little of the machine that the server needs (benchmarks/wire/wire_caller.py); the last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.wire.wire_caller import Target, WireCaller
from serving.access.role import RANKING_SERVICE
from serving.proto import sluice_pb2 as pb
from serving.request.wire_values import to_value

CONNECTIONS, WARM_UP, VARIED = 8, 20, 4096
LINGER = 2.0  # seconds for the last answers
BEGUN = "calls begin"  # said once the server has answered a few
LOST = "LOST"  # the status of a call without any
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
    """What was answered, and how long it took."""
    callers = await connected(chosen)
    calls, begun = list[Call](), time.process_time()
    if chosen.callers:
        await again_at_once(callers, chosen, calls)
        seconds = chosen.seconds
    else:
        seconds = await by_the_clock(callers, chosen, calls)
    for caller in callers:
        caller.close()
    if chosen.record is not None:
        np.savez(chosen.record, due=[call.due for call in calls],
                 done=[call.done or call.due + chosen.deadline for call in calls],
                 code=[call.code or LOST for call in calls])
    cores = (time.process_time() - begun) / seconds
    rate = chosen.rate or len(calls) / seconds
    return figures(calls, rate, seconds).model_copy(update={"generator_cores": cores})


async def connected(chosen: argparse.Namespace) -> list[WireCaller]:
    """Each has been answered a few times."""
    callers = [WireCaller(_target(chosen)) for _ in range(chosen.callers or chosen.connections)]
    message = messages(chosen)[0]
    for number in range(max(WARM_UP, len(callers))):
        code, _ = await callers[number % len(callers)].ask(message, 5.0)
        if code != "OK":
            raise SystemExit(f"{chosen.target} does not answer: {code}")
    return callers


def _target(chosen: argparse.Namespace) -> Target:
    host, _, port = chosen.target.rpartition(":")
    return Target(host, int(port), f"/{RANKING_SERVICE}/Rank")


async def by_the_clock(callers: Sequence[WireCaller], chosen: argparse.Namespace, calls: list[Call]) -> float:
    """Poisson arrivals; those that are due together go out together. Seconds until it was over, or told to end."""
    draw, loop, ready = np.random.default_rng(chosen.seed), asyncio.get_running_loop(), messages(chosen)
    told, target = asyncio.Event(), _target(chosen)
    loop.add_signal_handler(signal.SIGTERM, told.set)
    print(BEGUN, flush=True)
    begin = due = loop.time() + 0.1
    end = due + chosen.seconds
    while due < end and not told.is_set():
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        else:
            await asyncio.sleep(0)  # answers come in between
        caller, then = callers[len(calls) % len(callers)], _nothing
        if chosen.new and draw.random() < chosen.new:
            caller = WireCaller(target)
            then = caller.close
        _ask(caller, ready[int(draw.integers(0, len(ready)))], due, chosen.deadline, calls, then)
        due += float(draw.exponential(1.0 / chosen.rate))
    seconds = min(loop.time() if told.is_set() else end, end) - begin
    last = loop.time() + chosen.deadline + LINGER
    while any(not call.code for call in calls) and loop.time() < last:
        await asyncio.sleep(0.01)
    return seconds


def _nothing() -> None:
    pass


async def again_at_once(callers: Sequence[WireCaller], chosen: argparse.Namespace, calls: list[Call]) -> None:
    """Every connection asks again when it has been answered."""
    loop, ready = asyncio.get_running_loop(), messages(chosen)
    end = loop.time() + chosen.seconds

    def ask(caller: WireCaller) -> None:
        if loop.time() < end:
            message = ready[len(calls) % len(ready)]
            _ask(caller, message, loop.time(), chosen.deadline, calls, lambda: ask(caller))

    for caller in callers:
        ask(caller)
    while loop.time() < end or any(not call.code for call in calls):
        await asyncio.sleep(0.01)


def messages(chosen: argparse.Namespace) -> list[bytes]:
    """Of varied users, ready to be sent."""
    draw = np.random.default_rng(chosen.seed + 1)
    if chosen.names is not None:
        names = chosen.names.read_text(encoding="utf-8").splitlines()
        return [pb.RankRequest(user_id=str(name)).SerializeToString() for name in draw.permutation(names)[:VARIED]]
    return [request(int(number), chosen.users, chosen.values, chosen.reasons, chosen.candidates).SerializeToString()
            for number in draw.integers(0, 10**9, VARIED)]


def _ask(
    caller: WireCaller, message: bytes, due: float, deadline: float, calls: list[Call],
    then: Callable[[], None] = _nothing,
) -> None:
    clock = asyncio.get_running_loop().time
    call = Call(due, sent=clock())
    calls.append(call)

    def ended(code: str, answer: bytes) -> None:
        call.done, call.code = clock(), code
        call.degraded = code == "OK" and pb.RankResponse.FromString(answer).degraded
        then()

    caller.call(message, max(deadline - (call.sent - due), 0.001), ended)


def figures(calls: Sequence[Call], rate: float, seconds: float) -> LoadFigures:
    answered = [call for call in calls if call.code == "OK"]
    ended = answered or [call for call in calls if call.done]  # where none was answered: until callers heard so
    spent = np.array([call.done - call.due for call in ended] or [seconds]) * 1000
    p50, p95, p99 = np.percentile(spent, (50, 95, 99))
    late = np.array([call.sent - call.due for call in calls if call.sent] or [0.0]) * 1000
    return LoadFigures(
        rate=rate, requests=len(calls), answered=len(answered) / seconds,
        degraded=sum(call.degraded for call in answered), codes=dict(Counter(call.code or LOST for call in calls)),
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
    """By a generator in a process of its own; a rate of 0 with `callers` is a closed loop."""
    options = [f"--{name}={value}" for name, value in more.items() if not isinstance(value, bool)]
    options += [f"--{name}" for name, value in more.items() if value is True]
    command = [sys.executable, "-m", "benchmarks.serving.open_loop", target, f"--rate={rate}", f"--seconds={seconds}",
               f"--deadline={deadline}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return LoadFigures.model_validate_json(done.stdout.splitlines()[-1])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second")
    parser.add_argument("--callers", type=int, default=0, help="who ask again at once, in place of a rate")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--deadline", type=float, default=0.1)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--values", type=int, default=1000)
    parser.add_argument("--candidates", type=int, default=0)
    parser.add_argument("--names", type=Path, help="of users, one a line, who are asked for without a context")
    parser.add_argument("--new", type=float, default=0.0, help="share of calls that have a connection of their own")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reasons", action="store_true")
    chosen = parser.parse_args(argv)
    if (chosen.rate > 0) == (chosen.callers > 0):
        parser.error("give either --rate or --callers")
    print(json.dumps(asyncio.run(offer(chosen)).model_dump()))


if __name__ == "__main__":
    main()
