"""What the client sends is what it was given, and what fails comes back as one kind of error."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.client import RankingClient, RankingFailed
from tests.serving.in_process_server import InProcessServer


class Listener(sluice_pb2_grpc.RankingServicer):
    """Keeps the last request; refuses the user "nobody" in two fields."""

    heard = pb.RankRequest()

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        self.heard = request
        if request.user_id == "nobody":
            detail = any_pb2.Any()
            detail.Pack(error_details_pb2.BadRequest(field_violations=[
                error_details_pb2.BadRequest.FieldViolation(field=name, description=f"{name} is wrong")
                for name in ("user_id", "limit")]))
            status = status_pb2.Status(
                code=code_pb2.INVALID_ARGUMENT, message="user_id is wrong", details=[detail])
            await context.abort_with_status(rpc_status.to_status(status))
        return pb.RankResponse(request_id=request.request_id)


LISTENER = Listener()


@pytest.fixture(scope="module")
def client() -> Iterator[RankingClient]:
    with InProcessServer(LISTENER) as server, RankingClient(server.target) as client:
        client.wait_ready(20)
        yield client


def test_everything_given_is_sent(client: RankingClient) -> None:
    client.rank("u1", limit=4, context={"device": "phone", "hour": 7}, candidates=["a", "b"],
                filters={"category": ["music"]}, recent_items=["c"], skip_rerank=True, reasons=True,
                request_id="r1", seconds=20)
    heard = LISTENER.heard
    assert (heard.user_id, heard.limit, heard.request_id) == ("u1", 4, "r1")
    assert (heard.context["device"].text, heard.context["hour"].integer) == ("phone", 7)
    assert (list(heard.candidate_list.item_ids), list(heard.filters["category"].values)) == (["a", "b"], ["music"])
    assert (list(heard.recent_items.item_ids), heard.skip_rerank, heard.reasons) == (["c"], True, True)


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


def test_a_refusal_names_every_field_once(client: RankingClient) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("nobody", seconds=20)
    assert caught.value.fields == {"user_id": "user_id is wrong", "limit": "limit is wrong"}
    assert str(caught.value).splitlines() == ["INVALID_ARGUMENT: user_id is wrong", "  limit: limit is wrong"]


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with RankingClient("127.0.0.1:1") as nowhere, pytest.raises(RankingFailed) as caught:
        nowhere.rank("u1", seconds=20)
    assert (caught.value.code, caught.value.fields) == ("UNAVAILABLE", {})
