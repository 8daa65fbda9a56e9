"""A call that would wait in vain is refused before its request is read; all others are as without the entry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import grpc
import pytest
import torch
from torch import nn

from contracts.config.stages import Serve
from models.examples.batches import FeatureBlock
from serving.bundle.loaded_bundle import LoadedBundle
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer

SLOW, SHORT, LONG = 0.3, 0.15, 20.0
UNREADABLE = b"\xff\xff\xff"
WAITING = 4


class SlowRanker(nn.Module):
    def __init__(self, ranker: nn.Module) -> None:
        super().__init__()
        self.ranker = ranker

    def forward(self, *blocks: FeatureBlock) -> torch.Tensor:
        time.sleep(SLOW)
        return self.ranker(*blocks)


@pytest.fixture
def servicer(loaded: LoadedBundle) -> Iterator[RankingServicer]:
    slow = replace(loaded, ranker=SlowRanker(loaded.ranker))
    made = RankingServicer(Funnel(slow), loaded.manifest, Serve(queue_ms=60_000))
    yield made
    made.close()


@pytest.fixture
def channel(servicer: RankingServicer) -> Iterator[grpc.Channel]:
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        grpc.channel_ready_future(channel).result(20)
        yield channel


def test_who_would_wait_in_vain_is_refused_unread(channel: grpc.Channel, servicer: RankingServicer) -> None:
    """What is refused could not even be parsed."""
    rank, asked = sluice_pb2_grpc.RankingStub(channel).Rank, pb.RankRequest(user_id="u01")
    rank(asked, timeout=LONG)
    patient = [rank.future(asked, timeout=LONG) for _ in range(WAITING)]
    while servicer.load()["sluice-waiting"] == "0":
        time.sleep(0.005)
    with pytest.raises(grpc.RpcError, match="the queue alone takes") as caught:
        channel.unary_unary("/sluice.v1.Ranking/Rank")(UNREADABLE, timeout=SHORT)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert servicer.load()["sluice-turned-away"] == "1"
    assert all(one.result().items for one in patient)
    assert servicer.taken == WAITING + 2


def test_what_cannot_be_parsed_fails_and_the_next_call_does_not(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError):
        channel.unary_unary("/sluice.v1.Ranking/Rank")(UNREADABLE, timeout=LONG)
    assert sluice_pb2_grpc.RankingStub(channel).Rank(pb.RankRequest(user_id="u01"), timeout=LONG).items


def test_a_call_without_a_request_is_told_so(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError, match="without a request"):
        channel.stream_unary("/sluice.v1.Ranking/Rank")(iter(()), timeout=LONG)
