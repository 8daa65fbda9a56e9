"""What the client sends is what it was given."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.client import Placement, RankingClient
from tests.serving.in_process_server import InProcessServer


class Listener(sluice_pb2_grpc.RankingServicer):
    """Keeps the last request."""

    heard = pb.RankRequest()

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        self.heard = request
        return pb.RankResponse(request_id=request.request_id)


LISTENER = Listener()


@pytest.fixture(scope="module")
def client() -> Iterator[RankingClient]:
    with InProcessServer(LISTENER) as server, RankingClient(server.target) as client:
        client.wait_ready(20)
        yield client


def test_everything_given_is_sent(client: RankingClient) -> None:
    client.rank("u1", limit=4, context={"device": "phone", "hour": 7}, candidates=["a", "b"],
                filters={"category": ["music"]}, excluded={"brand": ["b"]},
                ranges={"bid": (0.5, None)}, placements=[Placement("top", excluded={"brand": ["c"]},
                                                                   ranges={"stock": (None, 9.0)})],
                recent_items=["c"], skip_rerank=True, reasons=True,
                request_id="r1", seconds=20)
    heard = LISTENER.heard
    assert (heard.user_id, heard.limit, heard.request_id) == ("u1", 4, "r1")
    assert (heard.context["device"].text, heard.context["hour"].integer) == ("phone", 7)
    assert (list(heard.candidate_list.item_ids), list(heard.filters["category"].values)) == (["a", "b"], ["music"])
    assert (list(heard.recent_items.item_ids), heard.skip_rerank, heard.reasons) == (["c"], True, True)
    assert list(heard.excluded["brand"].values) == ["b"]
    assert (heard.ranges["bid"].at_least, heard.ranges["bid"].HasField("at_most")) == (0.5, False)
    top = heard.placements[0]
    assert (list(top.excluded["brand"].values), top.ranges["stock"].at_most) == (["c"], 9.0)
    assert not top.ranges["stock"].HasField("at_least")


def test_what_is_left_out_is_told_from_what_is_empty(client: RankingClient) -> None:
    client.rank("u1", seconds=20)
    assert not LISTENER.heard.HasField("limit")
    assert not LISTENER.heard.HasField("candidate_list")
    client.rank("u1", candidates=(), seconds=20)
    assert LISTENER.heard.HasField("candidate_list")
    assert not LISTENER.heard.HasField("recent_items")
    client.rank("u1", limit=0, recent_items=[], seconds=20)
    assert LISTENER.heard.HasField("limit")
    assert LISTENER.heard.HasField("recent_items")
