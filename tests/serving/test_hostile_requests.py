"""Requests of nobody's good will, over a real channel: each is refused as documented, at once, for little memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from benchmarks.hostile.fuzz import measure
from benchmarks.hostile.outcome import NOT_KEPT
from serving.bundle.loaded_bundle import LoadedBundle
from serving.native.grpc_server import grpc_server
from serving.native.native_library import library
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request import message_bounds
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer
from tests.serving.recorded_events import recordable

LARGE = "x" * 900_000
INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED
MOST_METADATA = 4096
SECONDS = 20.0


@pytest.fixture(scope="module", params=[grpc.aio.server, grpc_server], ids=["aio", "whichever"])
def channel(loaded: LoadedBundle, request: pytest.FixtureRequest) -> Iterator[grpc.Channel]:
    serve = loaded.settings.serve.model_copy(update={"max_candidates": 2000})
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, serve)
    with InProcessServer(servicer, options=message_bounds.channel_options(serve), made=request.param) as server, \
            grpc.insecure_channel(server.target) as channel:
        sluice_pb2_grpc.RankingStub(channel).Rank(pb.RankRequest(user_id="u01"), timeout=SECONDS)
        yield channel
    servicer.close()


@pytest.mark.parametrize("asked", [
    {"candidates": [*(["i01"] * 1999), LARGE]},
    {"filters": {"category": pb.Values(values=[*(["x"] * 199), LARGE])}},
    {"filters": {LARGE: pb.Values(values=["x"])}},
    {"context": {LARGE: pb.Value(text="x")}},
    {"context": {"device": pb.Value(text=LARGE)}},
    {"context": {"device": pb.Value(text="y" * 500)}, "limit": 1000},
    {"context": {"device\n" * 70: pb.Value(text="x")}},
    {"context": {"hour": pb.Value(text="\U0001f600" * 500)}},
    {"context": {"device": pb.Value(list=pb.ValueList(values=[pb.Value()] * 100_000))}},
    {"user_id": LARGE}, {"request_id": LARGE},
    {"recent_items": pb.RecentItems(item_ids=[""] * 100_000)},
    {"placements": [pb.Placement()] * 100_000},
    {"placements": [pb.Placement(name=LARGE)]},
    {"features": {str(number): pb.Features() for number in range(50_000)}},
    {"features": {"new": pb.Features(values={str(number): pb.Value(integer=1) for number in range(50_000)})}},
])
def test_too_much_is_an_invalid_argument_that_shows_little_of_it(channel: grpc.Channel, asked: dict[str, Any]) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        sluice_pb2_grpc.RankingStub(channel).Rank(pb.RankRequest(**{"user_id": "u01", **asked}), timeout=SECONDS)
    assert caught.value.code() is INVALID
    assert len(caught.value.details()) < 400
    assert caught.value.details().isprintable()
    assert sum(len(key) + len(value) for key, value in caught.value.trailing_metadata()) < MOST_METADATA


def test_what_is_too_large_is_not_read(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError, match="larger than max") as caught:
        sluice_pb2_grpc.RankingStub(channel).Rank(pb.RankRequest(user_id=LARGE * 2), timeout=SECONDS)
    assert caught.value.code() is EXHAUSTED


def test_a_compressed_request_is_unpacked_up_to_the_limit_or_not_at_all(
    channel: grpc.Channel, request: pytest.FixtureRequest
) -> None:
    rank, packed = channel.unary_unary("/sluice.v1.Ranking/Rank"), grpc.Compression.Gzip
    native = library() is not None and "whichever" in request.node.name
    with pytest.raises(grpc.RpcError, match="is disabled" if native else "larger than max") as caught:
        rank(bytes(20_000_000), timeout=SECONDS, compression=packed)
    assert caught.value.code() is (grpc.StatusCode.UNIMPLEMENTED if native else EXHAUSTED)
    if not native:
        assert rank(pb.RankRequest(user_id="u01").SerializeToString(), timeout=SECONDS, compression=packed)


@pytest.mark.parametrize("requests", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_drawn_call_ends_the_worker_takes_much_or_gets_another_status(
    bundle_folder: Path, tmp_path: Path, requests: int
) -> None:
    """A process of its own, which keeps events, and whose memory and processor time are looked at of every call."""
    found = measure(recordable(bundle_folder, tmp_path), requests, seed_=requests)
    assert found.requests >= 0.8 * requests
    assert found.alive
    assert found.undocumented == 0, found.statuses
    assert NOT_KEPT not in found.statuses
    assert found.slow == 0, found.max_cpu_ms  # of processor time, whatever else the machine does
    assert found.large == 0, found.max_mb
    assert found.max_metadata_bytes < MOST_METADATA
    assert found.log_bytes < 5000  # nobody fills the log from outside
