"""One caller's requests, and what a call costs that does nothing, so that of a request's time over the wire what the
stages take can be told from the rest.

    rank      a request, by the lightest caller there is (benchmarks/wire/blocking_caller.py)
    inside    the same query in this process, by a funnel of the same bundle
    adds      a request's time less that; `beyond` its time less what its own answer says that its stages took, which is
              more: a funnel does something between its stages
    client    the same requests by the product's client, which takes a share of what it measures
    empty     `Check` of gRPC's health service, at the same server by the light caller
    bare      an empty message said back by a server of `grpc.aio` on uvloop that has nothing else, a process of its own
    floor     the same server, which gives `Rank`'s answer by what `sluice bench funnel` calls its floor

One after the other from one thread, in turns of TURN calls, so that what else the machine does falls on all of them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import torch
import uvloop
from grpc_health.v1 import health
from threadpoolctl import threadpool_limits

from benchmarks.bare.bare_cascade import BareCascade
from benchmarks.serving.funnel import USERS, VALUES, asked
from benchmarks.serving.open_loop import request
from benchmarks.wire.blocking_caller import BlockingCaller
from benchmarks.wire.wire_caller import Target
from contracts.errors import SluiceError
from serving.access.role import RANKING_SERVICE
from serving.bundle.loaded_bundle import LoadedBundle
from serving.proto import sluice_pb2 as pb
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.server.client import RankingClient
from serving.stages.funnel import Funnel
from serving.start.warm_up import warm_up

SERVICE, METHOD, HOST = "sluice.bench.Echo", "Say", "127.0.0.1"
TURN, WARM_UP, SECONDS = 20, 20, 5.0


def funnel_of(folder: Path) -> Callable[[int], object]:
    """The funnel of a bundle in this process, which is told a request's number."""
    bundle = LoadedBundle.load(folder)
    funnel, limit = Funnel(bundle), bundle.settings.serve.default_limit
    warm_up(funnel, bundle)

    def ask(number: int) -> object:
        user, context = asked(number)
        return funnel.rank(RankQuery(user, limit, context), Deadline(SECONDS))

    return ask


def one_caller(target: str, times: int, inside: Callable[[int], object]) -> dict[str, float]:
    """Milliseconds of so many requests that follow one another by either caller, what they `add` to those `inside` and
    `beyond` their stages, by the light one, and the medians of as many calls of either kind that do nothing. Raises
    SluiceError where a call fails."""
    messages = [request(number, USERS, VALUES, False, 0).SerializeToString() for number in range(times)]
    answers = list[bytes]()
    with (RankingClient(target) as client, bare_server() as bare, light(target, RANKING_SERVICE, "Rank") as rank,
          light(target, health.SERVICE_NAME, "Check") as check, light(bare, SERVICE, METHOD) as echo):

        def by_client(number: int) -> object:
            return client.rank(f"u{number % USERS}", context={"context0": f"v{number % VALUES}"}, seconds=SECONDS)

        ranked, in_process, by_library, empty, said = in_turns((
            lambda number: answers.append(answered(rank, messages[number % times])), inside, by_client,
            lambda _: answered(check, b""), lambda _: answered(echo, b"")), times)
    beyond = ranked - np.array([stages_ms(answer) for answer in answers[-times:]])
    medians = {"inside_ms": in_process, "beyond_ms": beyond, "client_p50_ms": by_library, "empty_ms": empty,
               "bare_empty_ms": said}
    found = {name: float(np.median(spent)) for name, spent in medians.items()}
    p50, p99 = np.percentile(ranked, (50, 99)).tolist()
    return {"p50_ms": p50, "p99_ms": p99, "adds_ms": p50 - found["inside_ms"], **found}


def floor_p50(target: str, times: int) -> float:
    """Median milliseconds of so many of the floor's answers that follow one another."""
    messages = [request(number, USERS, VALUES, False, 0).SerializeToString() for number in range(times)]
    with light(target, RANKING_SERVICE, "Rank") as caller:
        return float(np.median(in_turns((lambda number: answered(caller, messages[number % times]),), times)[0]))


def light(target: str, service: str, method: str) -> BlockingCaller:
    """Of HOST:PORT."""
    host, _, port = target.rpartition(":")
    return BlockingCaller(Target(host, int(port), f"/{service}/{method}"))


def answered(caller: BlockingCaller, message: bytes) -> bytes:
    """Raises SluiceError where the call fails."""
    code, answer = caller.ask(message, SECONDS)
    if code != "OK":
        raise SluiceError(f"a call of the benchmark ended with {code}; see the server's log")
    return answer


def stages_ms(answer: bytes) -> float:
    """What the stages of a `RankResponse` took together, as it says itself."""
    return sum(stage.microseconds for stage in pb.RankResponse.FromString(answer).stages) / 1000


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
def bare_server(folder: Path | None = None) -> Iterator[str]:
    """HOST:PORT of a process that says back what it is told, or with the folder of a bundle does its floor's work for
    `Rank`. It ends with its standard input."""
    told = [] if folder is None else [str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.serving.empty_calls", *told], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def floor_answer(folder: Path) -> Callable[[bytes], bytes]:
    """The slate that `Rank` gives, by the bare cascade, without anything about how it came to be."""
    torch.set_num_threads(1)
    threadpool_limits(1)
    bundle = LoadedBundle.load(folder)
    bare, default = BareCascade(bundle), bundle.settings.serve.default_limit

    def answer(message: bytes) -> bytes:
        asked, response = pb.RankRequest.FromString(message), pb.RankResponse()
        context = {name: value.text for name, value in asked.context.items()}
        with torch.inference_mode():
            for sold in bare(asked.user_id, context, asked.limit or default):
                response.items.add(item_id=sold.item, probability=sold.probability, score=sold.score, price=sold.price)
        return response.SerializeToString()

    return answer


async def serve(service: str, method: str, answer: Callable[[bytes], bytes]) -> None:
    """Until standard input ends."""
    async def say(message: bytes, _: grpc.aio.ServicerContext) -> bytes:
        return answer(message)

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(say)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    print(f"{HOST}:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    if sys.argv[1:]:
        uvloop.run(serve(RANKING_SERVICE, "Rank", floor_answer(Path(sys.argv[1]))))
    else:
        uvloop.run(serve(SERVICE, METHOD, bytes))
