"""A gRPC server that answers visits with items of a market, by the bundle that it is told to name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import grpc

from contracts.config.stages import Serve
from serving.proto import sluice_pb2 as pb
from serving.proto.sluice_pb2_grpc import RankingServicer, add_RankingServicer_to_server
from serving.response_log.response_log import ResponseLog
from serving.server.translation import to_query
from tests.serving.logged_responses import logged


class RankingPage(RankingServicer):
    """`versions` are named one after the other, the last one for ever; `requests` are those that came, which a `log`
    keeps as the server's does."""

    def __init__(self, items: Sequence[str], versions: list[str], log: ResponseLog | None) -> None:
        self.items, self.versions, self.requests, self.log = items, versions, list[Any](), log
        self.target = ""

    def Rank(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        version = self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]
        if self.log is not None:
            context_values = {name: str(value) for name, value in to_query(request, Serve()).context.items()}
            self.log.append(logged(
                request.request_id, self.items[:request.limit], time=datetime.now(UTC), user=request.user_id,
                context=context_values, version=version, created=datetime.now(UTC)))
        items = [pb.RankedItem(item_id=item) for item in self.items[:request.limit]]
        return pb.RankResponse(items=items, bundle_version=version)


@contextmanager
def ranking_page(items: Sequence[str], *versions: str, log: ResponseLog | None = None) -> Iterator[RankingPage]:
    page, server = RankingPage(items, list(versions), log), grpc.server(ThreadPoolExecutor(2))
    add_RankingServicer_to_server(page, server)
    page.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield page
    finally:
        server.stop(None).wait()
