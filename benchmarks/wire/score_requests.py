"""200 items to score, as each server wants them, by one of two callers of either kind.

    wire       ready bytes on a blocking socket, for gRPC (benchmarks/wire/blocking_caller.py) and for HTTP alike
               (http_caller.py): neither server pays for its callers' library
    library    gRPC's channel and Python's http.client, as a program that uses them would call; a message is serialised,
               an answer parsed, by whatever the library takes

`ask` is what is timed. Whether an answer holds a probability for every item is looked up by `scored`, which is not.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import grpc

from benchmarks.wire.blocking_caller import BlockingCaller
from benchmarks.wire.http_caller import HttpCaller, post
from benchmarks.wire.wire_caller import Target
from serving.access.role import RANKING_SERVICE
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.wire_values import to_value

ITEMS, VARIED, SECONDS = 200, 64, 30.0
GRPC = "grpc"
PATHS = {"fastapi": "/score", "litserve": "/predict", "bentoml": "/score", "mlflow": "/invocations",
         "ray_serve": "/score"}


class Asker(NamedTuple):
    """`ask` takes the number of a request, `scored` what it returned: None where it failed."""

    ask: Callable[[int], Any]
    scored: Callable[[Any], int]
    close: Callable[[], None]


def items_of(number: int, known: int) -> list[str]:
    return [f"i{(number * 7919 + n * 13) % known}" for n in range(ITEMS)]


def body(server: str, number: int, users: int, known: int) -> dict[str, Any]:
    """The same request as each server of HTTP wants it."""
    user, items = f"u{number % users}", items_of(number, known)
    if server == "mlflow":
        return {"dataframe_split": {"columns": ["user", "item"], "data": [[user, item] for item in items]}}
    return {"user": user, "items": items}


def message(number: int, users: int, known: int) -> pb.ScoreRequest:
    """And as ours does."""
    return pb.ScoreRequest(user_id=f"u{number % users}", item_ids=items_of(number, known),
                           context={"context0": to_value("v1")})


def http_by_wire(server: str, target: str, users: int, known: int) -> Asker:
    requests = [post(target, PATHS[server], json.dumps(body(server, number, users, known)).encode())
                for number in range(VARIED)]
    caller = HttpCaller(target, SECONDS)

    def ask(number: int) -> bytes | None:
        status, answer = caller.ask(requests[number % VARIED])
        return answer if status == http.client.OK else None

    return Asker(ask, lambda answer: _listed(json.loads(answer)), caller.close)


def http_by_library(server: str, target: str, users: int, known: int) -> Asker:
    bodies = [json.dumps(body(server, number, users, known)) for number in range(VARIED)]
    connection = http.client.HTTPConnection(target, timeout=SECONDS)

    def ask(number: int) -> Any:
        connection.request("POST", PATHS[server], bodies[number % VARIED], {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        return found if answer.status == http.client.OK else None

    return Asker(ask, _listed, connection.close)


def grpc_by_wire(target: str, users: int, known: int) -> Asker:
    messages = [message(number, users, known).SerializeToString() for number in range(VARIED)]
    host, _, port = target.rpartition(":")
    caller = BlockingCaller(Target(host, int(port), f"/{RANKING_SERVICE}/Score"))

    def ask(number: int) -> bytes | None:
        code, answer = caller.ask(messages[number % VARIED], SECONDS)
        return answer if code == "OK" else None

    return Asker(ask, lambda answer: len(pb.ScoreResponse.FromString(answer).probabilities), caller.close)


def grpc_by_library(target: str, users: int, known: int) -> Asker:
    channel = grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
    stub = sluice_pb2_grpc.RankingStub(channel)
    messages = [message(number, users, known) for number in range(VARIED)]

    def ask(number: int) -> pb.ScoreResponse | None:
        try:
            return stub.Score(messages[number % VARIED], timeout=SECONDS)
        except grpc.RpcError as error:
            print(error.code(), error.details(), file=sys.stderr)
            return None

    return Asker(ask, lambda answer: len(answer.probabilities), channel.close)


def asker(server: str, by: str, target: str, users: int, known: int) -> Asker:
    """`server` is "grpc" or one of PATHS; `by` names one of BY."""
    if server == GRPC:
        return {"wire": grpc_by_wire, "library": grpc_by_library}[by](target, users, known)
    return {"wire": http_by_wire, "library": http_by_library}[by](server, target, users, known)


BY = ("wire", "library")


def _listed(found: Any) -> int:
    """Probabilities in an answer of JSON."""
    return len(found if isinstance(found, list) else found.get("probabilities") or found["predictions"])
