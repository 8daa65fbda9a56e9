"""The status of a call and the memory that it took are seen; the server here is this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from benchmarks.hostile.messages import Sent
from benchmarks.hostile.outcome import Target

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        if request == b"greedy":
            return bytes(len(b"x" * (200 * MEGABYTE)) % 7)
        if request == b"bad":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "bad")
        return b""

    server = grpc.server(ThreadPoolExecutor(1))
    methods = {"Rank": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("sluice.v1.Ranking", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Target(os.getpid(), channel)
    server.stop(0).wait()


def test_statuses_are_documented_or_not(target: Target) -> None:
    assert target.ask(Sent("Ranking/Rank", "drawn", b"fine")).documented
    refused = target.ask(Sent("Ranking/Rank", "spoilt", b"bad"))
    assert (refused.status, refused.documented) == ("INVALID_ARGUMENT", True)
    assert not target.ask(Sent("Ranking/Score", "drawn", b"fine")).documented  # UNIMPLEMENTED here
    assert not target.ask(Sent("Ranking/Rank", "too large", b"fine")).documented


def test_memory_is_seen_though_it_was_given_back(target: Target) -> None:
    assert target.ask(Sent("Ranking/Rank", "drawn", b"fine")).megabytes < 50
    assert target.ask(Sent("Ranking/Rank", "drawn", b"greedy")).megabytes > 150
