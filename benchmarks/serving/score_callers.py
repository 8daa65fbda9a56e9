"""Callers that ask again at once: 200 items to score, over gRPC or as JSON over HTTP with kept connections.

    python -m benchmarks.serving.score_callers grpc 127.0.0.1:50051 --callers 4 --seconds 5

A process of its own; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import grpc
import numpy as np
from pydantic import BaseModel, ConfigDict

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.wire_values import to_value

ITEMS, VARIED = 200, 64
PATHS = {"fastapi": "/score", "litserve": "/predict", "bentoml": "/score", "mlflow": "/invocations",
         "ray_serve": "/score"}
Ask = Callable[[int], int]  # number of a request -> how many items were scored


class CallerFigures(BaseModel):
    """Of requests that were answered with a probability for every item; `failed` counts the others."""

    model_config = ConfigDict(frozen=True)

    callers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int


def items_of(number: int, known: int) -> list[str]:
    return [f"i{(number * 7919 + n * 13) % known}" for n in range(ITEMS)]


def body(server: str, number: int, users: int, known: int) -> dict[str, Any]:
    """The same request as each server wants it."""
    user, items = f"u{number % users}", items_of(number, known)
    if server == "mlflow":
        return {"dataframe_split": {"columns": ["user", "item"], "data": [[user, item] for item in items]}}
    return {"user": user, "items": items}


def over_http(server: str, target: str, users: int, known: int) -> tuple[Ask, Callable[[], None]]:
    bodies = [json.dumps(body(server, number, users, known)) for number in range(VARIED)]
    connection = http.client.HTTPConnection(target, timeout=30)

    def ask(number: int) -> int:
        connection.request("POST", PATHS[server], bodies[number % VARIED], {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        if answer.status != http.client.OK:
            return 0
        return len(found if isinstance(found, list) else found.get("probabilities") or found["predictions"])

    return ask, connection.close


def over_grpc(target: str, users: int, known: int) -> tuple[Ask, Callable[[], None]]:
    channel = grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
    stub, context = sluice_pb2_grpc.RankingStub(channel), {"context0": to_value("v1")}
    asked = [pb.ScoreRequest(user_id=f"u{number % users}", item_ids=items_of(number, known), context=context)
             for number in range(VARIED)]

    def ask(number: int) -> int:
        try:
            return len(stub.Score(asked[number % VARIED], timeout=30).probabilities)
        except grpc.RpcError as error:
            print(error.code(), error.details(), file=sys.stderr)
            return 0

    return ask, channel.close


def call(server: str, target: str, users: int, known: int, end: float, first: int) -> tuple[list[float], int]:
    """Milliseconds of each request until `end`, and how many failed."""
    if server == "grpc":
        ask, leave = over_grpc(target, users, known)
    else:
        ask, leave = over_http(server, target, users, known)
    spent, failed = list[float](), 0
    with closing(_Closed(leave)):
        while (begun := time.perf_counter()) < end:
            scored = ask(first + len(spent))
            spent.append((time.perf_counter() - begun) * 1000)
            failed += scored != ITEMS
    return spent, failed


class _Closed:
    def __init__(self, close: Callable[[], None]) -> None:
        self.close = close


def measured(server: str, target: str, chosen: argparse.Namespace) -> CallerFigures:
    end = time.perf_counter() + chosen.seconds
    with ThreadPoolExecutor(chosen.callers) as callers:
        waiting = [callers.submit(call, server, target, chosen.users, chosen.items, end, 17 * number)
                   for number in range(chosen.callers)]
        found = [one.result() for one in waiting]
    spent = np.concatenate([times for times, _ in found])
    p50, p99 = np.percentile(spent, (50, 99))
    return CallerFigures(callers=chosen.callers, per_second=len(spent) / chosen.seconds, p50_ms=float(p50),
                         p99_ms=float(p99), failed=sum(failed for _, failed in found))


def figures(server: str, target: str, callers: int, seconds: float, users: int, items: int) -> CallerFigures:
    """By callers in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.serving.score_callers", server, target, f"--callers={callers}",
               f"--seconds={seconds}", f"--users={users}", f"--items={items}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return CallerFigures.model_validate_json(done.stdout.splitlines()[-1])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", choices=["grpc", *PATHS])
    parser.add_argument("target")
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--items", type=int, default=100_000)
    chosen = parser.parse_args(argv)
    print(measured(chosen.server, chosen.target, chosen).model_dump_json())


if __name__ == "__main__":
    main()
