"""What a call costs that does nothing, so that of a request's time over the wire what is ours can be told from gRPC's.

    rank     a request, as one caller sees it
    empty    `Check` of gRPC's health service, over the same channel of the same server
    bare     an empty message said back by a server of `grpc.aio` on uvloop that has nothing else, a process of its own

One after the other from one thread, in turns of TURN calls, so that what else the machine does falls on all three.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
import numpy as np
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.serving.funnel import USERS, VALUES
from serving.server.client import RankingClient

SERVICE, METHOD, HOST = "sluice.bench.Echo", "Say", "127.0.0.1"
TURN, WARM_UP, SECONDS = 20, 20, 5.0


def one_caller(target: str, times: int) -> dict[str, float]:
    """Milliseconds of so many requests that follow one another, and the median of as many calls of either kind that do
    nothing."""
    with RankingClient(target) as client, bare_server() as bare, grpc.insecure_channel(bare) as channel:
        check, echo = health_pb2_grpc.HealthStub(client.channel).Check, channel.unary_unary(f"/{SERVICE}/{METHOD}")

        def rank(number: int) -> object:
            return client.rank(f"u{number % USERS}", context={"context0": f"v{number % VALUES}"}, seconds=SECONDS)

        ranked, empty, said = in_turns((
            rank, lambda _: check(health_pb2.HealthCheckRequest(), timeout=SECONDS),
            lambda _: echo(b"", timeout=SECONDS)), times)
    p50, p99 = np.percentile(ranked, (50, 99))
    return {"p50_ms": float(p50), "p99_ms": float(p99), "empty_ms": float(np.median(empty)),
            "bare_empty_ms": float(np.median(said))}


def in_turns(calls: tuple[Callable[[int], object], ...], times: int) -> list[np.ndarray]:
    """[times] milliseconds of each call, which is told its number; TURN of one, then as many of the next."""
    for call in calls:
        for number in range(WARM_UP):
            call(number)
    spent = np.zeros((len(calls), times))
    for start in range(0, times, TURN):
        for place, call in enumerate(calls):
            for number in range(start, min(start + TURN, times)):
                begun = time.perf_counter()
                call(number)
                spent[place, number] = 1000 * (time.perf_counter() - begun)
    return list(spent)


@contextmanager
def bare_server() -> Iterator[str]:
    """HOST:PORT of a process that says back what it is told, and ends with its standard input."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.serving.empty_calls"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


async def say_back() -> None:
    """Until standard input ends."""
    async def say(message: bytes, _: grpc.aio.ServicerContext) -> bytes:
        return message

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(say)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    print(f"{HOST}:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    uvloop.run(say_back())
