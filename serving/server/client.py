"""Clients: blocking and asynchronous, with a deadline a call, over one address or several.

A call that fails raises `RankingFailed` with gRPC's status and, where the server sent them, the offending fields. How
calls are sent again, and to whom: serving/server/delivery.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypedDict, Unpack

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from contracts.errors import SluiceError
from serving.access.client_credentials import ClientCredentials
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.query import ContextValue
from serving.request.wire_values import to_value
from serving.server.delivery import ONCE, Delivery, hedged, hedged_async

TENANT = "sluice-tenant"


class RankingFailed(SluiceError):
    """`code` is the name of gRPC's status, `fields` maps offending request fields to what is wrong with them."""

    def __init__(self, code: str, message: str, fields: dict[str, str]) -> None:
        unsaid = [f"  {name}: {text}" for name, text in fields.items() if text not in message]
        super().__init__("\n".join([f"{code}: {message}", *unsaid]))
        self.code, self.fields = code, fields


@dataclass(frozen=True)
class Placement:
    """One of several slates of a request; its fields are those of `RankingClient.rank`."""

    name: str
    limit: int | None = None
    context: Mapping[str, ContextValue] | None = None
    candidates: Sequence[str] | None = None
    filters: Mapping[str, Sequence[str]] | None = None

    def message(self) -> pb.Placement:
        """As it is sent."""
        return pb.Placement(name=self.name, limit=self.limit, context=_sent(self.context),
                            candidate_list=_listed(self.candidates), filters=_filters(self.filters))


class ScoreAsked(TypedDict, total=False):
    """What else is said with items to be scored (docs/reference/grpc.md)."""

    context: Mapping[str, ContextValue] | None
    features: Mapping[str, Mapping[str, ContextValue]] | None
    recent_items: Sequence[str] | None


class Asked(ScoreAsked, total=False):
    """What a slate is asked for with; `features` and `bids` describe candidates that the bundle does not know."""

    limit: int | None
    candidates: Sequence[str] | None
    filters: Mapping[str, Sequence[str]] | None
    skip_rerank: bool
    reasons: bool
    partial_ok: bool
    bids: Mapping[str, float] | None
    placements: Sequence[Placement]
    request_id: str


class RankingClient:
    """`with RankingClient("localhost:50051") as client: client.rank("u1")`; without `credentials` in plain text.
    Several addresses, divided by commas, take turns."""

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        self._credentials, self._delivery = credentials or ClientCredentials(), delivery
        where = delivery.target(target)
        self._channel = self._credentials.channel(where, delivery.options(where))
        self._stub = sluice_pb2_grpc.RankingStub(self._channel)

    def __enter__(self) -> RankingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def wait_ready(self, seconds: float) -> None:
        """Raises grpc.FutureTimeoutError where nobody listens in time."""
        grpc.channel_ready_future(self._channel).result(timeout=seconds)

    def _metadata(self, tenant: str) -> tuple[tuple[str, str], ...]:
        return call_metadata(self._credentials, tenant)

    def rank(self, user: str, *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]) -> pb.RankResponse:
        """`seconds` is the deadline, `tenant` whose share of the server this is. Raises RankingFailed."""
        return self._call(self._stub.Rank, rank_request(user, asked), tenant, seconds)

    def why_not(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]
    ) -> pb.WhyNotResponse:
        """The slate that `rank` would answer, and the stage that has dropped each of the items. Raises
        RankingFailed."""
        request = pb.WhyNotRequest(request=rank_request(user, asked), item_ids=items)
        return self._call(self._stub.WhyNot, request, tenant, seconds)

    def score(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[ScoreAsked]
    ) -> pb.ScoreResponse:
        """Probabilities of the items, in their order; `features` describe those that the bundle does not know."""
        return self._call(self._stub.Score, score_request(user, items, asked), tenant, seconds)

    def _call(self, method: Any, request: Message, tenant: str, seconds: float) -> Any:
        try:
            return hedged(method, request, seconds, self._metadata(tenant), self._delivery.hedge_seconds)
        except grpc.RpcError as error:
            raise failure(error) from None


class AsyncRankingClient:
    """`async with AsyncRankingClient("localhost:50051") as client: await client.rank("u1")`; else as RankingClient."""

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        self._credentials, self._delivery = credentials or ClientCredentials(), delivery
        where = delivery.target(target)
        options = delivery.options(where)
        self._credentials.check(where)
        self._channel = (grpc.aio.secure_channel(where, self._credentials.of_channel(), options=options)
                         if self._credentials.secure else grpc.aio.insecure_channel(where, options=options))
        self._stub: Any = sluice_pb2_grpc.RankingStub(self._channel)

    async def __aenter__(self) -> AsyncRankingClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def rank(
        self, user: str, *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]
    ) -> pb.RankResponse:
        """As RankingClient.rank."""
        found: pb.RankResponse = await self._call(self._stub.Rank, rank_request(user, asked), tenant, seconds)
        return found

    async def why_not(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]
    ) -> pb.WhyNotResponse:
        """As RankingClient.why_not."""
        request = pb.WhyNotRequest(request=rank_request(user, asked), item_ids=items)
        found: pb.WhyNotResponse = await self._call(self._stub.WhyNot, request, tenant, seconds)
        return found

    async def score(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[ScoreAsked]
    ) -> pb.ScoreResponse:
        """As RankingClient.score."""
        request = score_request(user, items, asked)
        found: pb.ScoreResponse = await self._call(self._stub.Score, request, tenant, seconds)
        return found

    async def _call(self, method: Any, request: Message, tenant: str, seconds: float) -> Any:
        metadata = call_metadata(self._credentials, tenant)
        try:
            return await hedged_async(method, request, seconds, metadata, self._delivery.hedge_seconds)
        except grpc.RpcError as error:
            raise failure(error) from None


def call_metadata(credentials: ClientCredentials, tenant: str) -> tuple[tuple[str, str], ...]:
    """Who calls, and for whom."""
    return (*credentials.metadata, *(((TENANT, tenant),) if tenant else ()))


def rank_request(user: str, asked: Asked) -> pb.RankRequest:
    """As it is sent."""
    request = pb.RankRequest(
        user_id=user,
        limit=asked.get("limit"),
        candidate_list=_listed(asked.get("candidates")),
        skip_rerank=asked.get("skip_rerank", False),
        reasons=asked.get("reasons", False),
        partial_ok=asked.get("partial_ok", True),
        request_id=asked.get("request_id", ""),
        context=_sent(asked.get("context")),
        filters=_filters(asked.get("filters")),
        features=_described(asked.get("features"), asked.get("bids")),
        placements=[placement.message() for placement in asked.get("placements", ())],
    )
    recent = asked.get("recent_items")
    if recent is not None:
        request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent))
    return request


def score_request(user: str, items: Sequence[str], asked: ScoreAsked) -> pb.ScoreRequest:
    """As it is sent."""
    request = pb.ScoreRequest(user_id=user, item_ids=items, context=_sent(asked.get("context")),
                              features=_described(asked.get("features"), None))
    recent = asked.get("recent_items")
    if recent is not None:
        request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent))
    return request


def _sent(context: Mapping[str, ContextValue] | None) -> dict[str, pb.Value]:
    return {name: to_value(value) for name, value in (context or {}).items()}


def _listed(candidates: Sequence[str] | None) -> pb.CandidateList | None:
    return None if candidates is None else pb.CandidateList(item_ids=candidates)


def _filters(filters: Mapping[str, Sequence[str]] | None) -> dict[str, pb.Values]:
    return {name: pb.Values(values=values) for name, values in (filters or {}).items()}


def _described(
    features: Mapping[str, Mapping[str, ContextValue]] | None, bids: Mapping[str, float] | None
) -> dict[str, pb.Features]:
    items = {**(features or {}), **(bids or {})}
    return {item: pb.Features(values=_sent((features or {}).get(item)), bid=(bids or {}).get(item)) for item in items}


def failure(error: grpc.RpcError) -> RankingFailed:
    """What a call that failed is to its caller."""
    status = rpc_status.from_call(error)
    fields: dict[str, str] = {}
    for detail in status.details if status else ():
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            fields |= {violation.field: violation.description for violation in bad.field_violations}
    return RankingFailed(error.code().name, error.details() or "", fields)
