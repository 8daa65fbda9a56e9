"""What fails comes back as one kind of error, whoever asked and whatever for."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from tests.serving.in_process_server import InProcessServer


class Refusing(sluice_pb2_grpc.RankingServicer):
    """In two fields."""

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.BadRequest(field_violations=[
            error_details_pb2.BadRequest.FieldViolation(field=name, description=f"{name} is wrong")
            for name in ("user_id", "limit")]))
        status = status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message="user_id is wrong", details=[detail])
        await context.abort_with_status(rpc_status.to_status(status))
        raise AssertionError("abort raises")


@pytest.fixture(scope="module")
def client() -> Iterator[RankingClient]:
    with InProcessServer(Refusing()) as server, RankingClient(server.target) as client:
        client.wait_ready(20)
        yield client


def test_a_refusal_names_every_field_once(client: RankingClient) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("nobody", seconds=20)
    assert caught.value.fields == {"user_id": "user_id is wrong", "limit": "limit is wrong"}
    assert str(caught.value).splitlines() == ["INVALID_ARGUMENT: user_id is wrong", "  limit: limit is wrong"]


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with RankingClient("127.0.0.1:1") as nowhere, pytest.raises(RankingFailed) as caught:
        nowhere.rank("u1", seconds=20)
    assert (caught.value.code, caught.value.fields) == ("UNAVAILABLE", {})
