"""Of a real call: what follows it is done, whatever another thing that follows it raises."""

from __future__ import annotations

import asyncio
from queue import SimpleQueue

import grpc
import pytest

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.after_call import after
from tests.serving.in_process_server import InProcessServer


def defect(context: object) -> None:
    raise ZeroDivisionError("defect")


class Followed(sluice_pb2_grpc.RankingServicer):
    def __init__(self) -> None:
        self.done = SimpleQueue[str]()

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        after(context, lambda _: self.done.put("first"))
        after(context, defect)
        after(context, lambda ended: self.done.put("last" if ended is context else "another"))
        if request.user_id == "aborted":
            await context.abort(grpc.StatusCode.INTERNAL, "aborted")
        if request.user_id == "gone":
            await asyncio.sleep(20)
        return pb.RankResponse()


@pytest.mark.parametrize("user", ["answered", "aborted", "gone"])
def test_each_is_done_whatever_another_raises(user: str, caplog: pytest.LogCaptureFixture) -> None:
    servicer = Followed()
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        sluice_pb2_grpc.RankingStub(channel).Rank.future(pb.RankRequest(user_id=user), timeout=0.5).exception(20)
        assert [servicer.done.get(timeout=20) for _ in range(2)] == ["first", "last"]
    assert [one.getMessage() for one in caplog.records if one.exc_info] == ["something that follows a call has failed"]
