"""Requests that ask every server for the same, and what counts as an answer, by either kind of caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import grpc
import pytest

from benchmarks.wire.score_requests import BY, GRPC, ITEMS, PATHS, asker, body, items_of, message
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc

ANSWERS = {"fastapi": {"probabilities": [0.5] * ITEMS}, "mlflow": {"predictions": [0.5] * ITEMS},
           "litserve": [0.5] * ITEMS}


class Refusing(sluice_pb2_grpc.RankingServicer):
    """Answers all but the third user."""

    def Score(self, request: pb.ScoreRequest, context: grpc.ServicerContext) -> pb.ScoreResponse:
        if request.user_id == "u2":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        return pb.ScoreResponse(probabilities=[0.5] * len(request.item_ids))


@contextmanager
def grpc_server() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    sluice_pb2_grpc.add_RankingServicer_to_server(Refusing(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


@contextmanager
def http_server(answer: object) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            written = json.dumps(answer).encode()
            self.send_response(500 if asked.get("user") == "u2" else 200)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_server_is_asked_for_the_same_items_of_the_same_user() -> None:
    for number in range(3):
        user, items = f"u{number}", items_of(number, 5000)
        assert len(set(items)) == ITEMS
        for server in set(PATHS) - {"mlflow"}:
            assert body(server, number, 10, 5000) == {"user": user, "items": items}
        rows = body("mlflow", number, 10, 5000)["dataframe_split"]
        assert (rows["columns"], rows["data"]) == (["user", "item"], [[user, item] for item in items])
        sent = message(number, 10, 5000)
        assert (sent.user_id, list(sent.item_ids)) == (user, items)


@pytest.mark.parametrize("by", BY)
def test_grpc_by_either_caller(by: str) -> None:
    with grpc_server() as target:
        one = asker(GRPC, by, target, 10, 5000)
        assert [one.scored(one.ask(number)) for number in (0, 1)] == [ITEMS, ITEMS]
        assert one.ask(2) is None
        one.close()


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("server", ANSWERS)
def test_http_by_either_caller(server: str, by: str) -> None:
    with http_server(ANSWERS[server]) as target:
        one = asker(server, by, target, 10, 5000)
        assert one.scored(one.ask(0)) == ITEMS
        assert server == "mlflow" or one.ask(2) is None
        one.close()
