"""A call that would wait in vain is refused before its request is read; all others are as without the entry."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import grpc
import pytest
import torch
from torch import nn

from contracts.config.stages import Serve
from models.examples.batches import FeatureBlock
from serving.batches.wire_parts import parts_of
from serving.bundle.loaded_bundle import LoadedBundle
from serving.metrics.request_observer import EndedCall, RequestObserver
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.wire_values import MOST_VALUES
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer

LONG = 20.0
UNREADABLE = b"\xff\xff\xff"
WAITING = 2


class GatedRanker(nn.Module):
    """Ranks while the gate is open."""

    def __init__(self, ranker: nn.Module, gate: threading.Event) -> None:
        super().__init__()
        self.ranker, self.gate = ranker, gate

    def forward(self, *blocks: FeatureBlock) -> torch.Tensor:
        self.gate.wait(LONG)
        return self.ranker(*blocks)


@pytest.fixture
def gate() -> threading.Event:
    made = threading.Event()
    made.set()
    return made


@pytest.fixture
def servicer(loaded: LoadedBundle, gate: threading.Event) -> Iterator[RankingServicer]:
    gated = replace(loaded, ranker=GatedRanker(loaded.ranker, gate))
    limits = Serve(max_queue=WAITING, queue_ms=60_000, max_deadline_ms=60_000)
    made = RankingServicer(Funnel(gated), loaded.manifest, limits)
    yield made
    made.close()


@pytest.fixture
def channel(servicer: RankingServicer) -> Iterator[grpc.Channel]:
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        grpc.channel_ready_future(channel).result(20)
        yield channel


def test_who_may_not_wait_is_refused_unread(
    channel: grpc.Channel, servicer: RankingServicer, gate: threading.Event
) -> None:
    """What is refused could not even be parsed."""
    rank, asked = sluice_pb2_grpc.RankingStub(channel).Rank, pb.RankRequest(user_id="u01")
    gate.clear()
    patient = [rank.future(asked, timeout=LONG) for _ in range(1 + WAITING)]
    until(lambda: servicer.load()["sluice-waiting"] == str(WAITING))
    with pytest.raises(grpc.RpcError, match="2 requests wait, as many as may") as caught:
        channel.unary_unary("/sluice.v1.Ranking/Rank")(UNREADABLE, timeout=LONG)
    gate.set()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert servicer.load()["sluice-turned-away"] == "1"
    assert all(one.result().items for one in patient)
    assert servicer.taken == 2 + WAITING


def test_a_score_may_wait_where_there_is_no_time_for_a_search(
    channel: grpc.Channel, servicer: RankingServicer, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Funnel, "least", 2 * LONG)
    stub, asked = sluice_pb2_grpc.RankingStub(channel), pb.RankRequest(user_id="u01")
    gate.clear()
    running = stub.Rank.future(asked, timeout=LONG)
    until(lambda: not servicer.engine.free)
    score = stub.Score.future(pb.ScoreRequest(user_id="u01", item_ids=["i01"]), timeout=LONG)
    with pytest.raises(grpc.RpcError, match="the queue alone takes"):
        stub.Rank(asked, timeout=LONG)
    until(lambda: servicer.taken == 3)
    gate.set()
    assert len(score.result().probabilities) == 1
    assert running.result().items


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_cannot_be_parsed_fails_and_the_next_call_does_not(channel: grpc.Channel) -> None:
    for method in ("Rank", "Score"):
        with pytest.raises(grpc.RpcError, match="is no request of this method") as caught:
            channel.unary_unary(f"/sluice.v1.Ranking/{method}")(UNREADABLE, timeout=LONG)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert sluice_pb2_grpc.RankingStub(channel).Rank(pb.RankRequest(user_id="u01"), timeout=LONG).items


def test_a_call_without_a_request_is_told_so(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError, match="without a request"):
        channel.stream_unary("/sluice.v1.Ranking/Rank")(iter(()), timeout=LONG)


def test_a_call_that_sends_nothing_ends(loaded: LoadedBundle) -> None:
    """And is counted as one that was not read."""
    heard, may_end = queue.SimpleQueue[EndedCall](), threading.Event()

    class Hearing(RequestObserver):
        def ended(self, call: EndedCall) -> None:
            heard.put(call)

    servicer = RankingServicer(Funnel(loaded), loaded.manifest, Serve(max_deadline_ms=10), observer=Hearing())
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        with pytest.raises(grpc.RpcError, match=r"no request came for 0\.01 s") as caught:
            channel.stream_unary("/sluice.v1.Ranking/Rank")(iter(may_end.wait, True), timeout=LONG)
        may_end.set()
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert heard.get(timeout=LONG).status == "DEADLINE_EXCEEDED"
    servicer.close()


@pytest.mark.parametrize(("method", "field"), [("Rank", 14), ("Score", 2), ("WhyNot", 2)])
def test_what_holds_too_many_parts_is_not_unpacked(channel: grpc.Channel, method: str, field: int) -> None:
    """A megabyte of empty placements takes forty of memory."""
    most = 3 * (Serve().max_candidates + MOST_VALUES)
    with pytest.raises(grpc.RpcError, match=f"the request: holds more than {most} values; send fewer") as caught:
        channel.unary_unary(f"/sluice.v1.Ranking/{method}")(bytes([field << 3 | 2, 0]) * (most + 1), timeout=LONG)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_the_most_values_that_a_request_may_hold_are_not_too_many_parts(servicer: RankingServicer) -> None:
    items = Serve().max_candidates
    described = pb.Features(values={f"field {n}": pb.Value(integer=n) for n in range(MOST_VALUES // items)})
    names = [f"item {n}" for n in range(items)]
    asked = pb.RankRequest(candidates=names, features=dict.fromkeys(names, described))
    parts = parts_of(asked.SerializeToString(), pb.RankRequest.DESCRIPTOR, 9 * MOST_VALUES)
    assert 2 * MOST_VALUES < parts < servicer.most_parts


def test_large_requests_of_one_caller_hold_so_many_bytes_until_they_are_answered(
    loaded: LoadedBundle, gate: threading.Event
) -> None:
    """Those that wait for the funnel, too; small ones hold none."""
    gated = replace(loaded, ranker=GatedRanker(loaded.ranker, gate))
    limits = Serve(max_request_kb=80, queue_ms=60_000, max_deadline_ms=60_000)
    servicer = RankingServicer(Funnel(gated), loaded.manifest, limits)
    large = pb.RankRequest(user_id="u01", recent_items=pb.RecentItems(item_ids=["x" * 500] * 140))
    gate.clear()
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        rank = sluice_pb2_grpc.RankingStub(channel).Rank
        patient = [rank.future(large, timeout=LONG) for _ in range(4)]
        end = time.monotonic() + LONG
        while servicer.load()["sluice-waiting"] != "3":
            assert time.monotonic() < end
            time.sleep(0.005)
        with pytest.raises(grpc.RpcError, match="wait for their answers of this caller alone") as caught:
            rank(large, timeout=LONG)
        small = rank.future(pb.RankRequest(user_id="u01"), timeout=LONG)
        gate.set()
        assert all(one.result().items for one in (*patient, small))
        assert all(rank(large, timeout=LONG).items for _ in range(5))
    servicer.close()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
