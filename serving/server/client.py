"""Clients of rankings: blocking and asynchronous, with a deadline a call, over one address or several.

How calls are sent again, and to whom: serving/server/delivery.py. Events: events_client.py; items: catalog_client.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack

from google.protobuf.timestamp_pb2 import Timestamp

from serving.access.client_credentials import ClientCredentials
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.query import ContextValue
from serving.request.wire_values import to_value
from serving.server.connection import AsyncConnection, Connection
from serving.server.delivery import ONCE, Delivery

Values = Mapping[str, ContextValue]
Bounds = tuple[float | None, float | None]  # at least, at most; both belong to it


@dataclass(frozen=True)
class Placement:
    """One of several slates of a request; its fields are those of `RankingClient.rank`."""

    name: str
    limit: int | None = None
    context: Values | None = None
    candidates: Sequence[str] | None = None
    filters: Mapping[str, Sequence[str]] | None = None
    excluded: Mapping[str, Sequence[str]] | None = None
    ranges: Mapping[str, Bounds] | None = None

    def message(self) -> pb.Placement:
        """As it is sent."""
        return pb.Placement(name=self.name, limit=self.limit, context=sent(self.context),
                            candidate_list=_listed(self.candidates), filters=_filters(self.filters),
                            excluded=_filters(self.excluded), ranges=_ranges(self.ranges))


class ScoreAsked(TypedDict, total=False):
    """What else is said with items to be scored (docs/reference/grpc.md)."""

    context: Values | None
    features: Mapping[str, Values] | None
    recent_items: Sequence[str] | None


class Asked(ScoreAsked, total=False):
    """What a slate is asked for with; `features` and `bids` describe candidates that the bundle does not know. An item
    is kept whose values are among those of `filters`, are not among those of `excluded`, and lie within `ranges`.
    `recent_times` (seconds since 1970) and `recent_columns` are of `recent_items`, one each."""

    limit: int | None
    candidates: Sequence[str] | None
    filters: Mapping[str, Sequence[str]] | None
    excluded: Mapping[str, Sequence[str]] | None
    ranges: Mapping[str, Bounds] | None
    recent_times: Sequence[float] | None
    recent_columns: Mapping[str, Sequence[str]] | None
    skip_rerank: bool
    reasons: bool
    partial_ok: bool
    bids: Mapping[str, float] | None
    placements: Sequence[Placement]
    request_id: str


class RankingClient(Connection):
    """`with RankingClient("localhost:50051") as client: client.rank("u1")`; without `credentials` in plain text.
    Several addresses, divided by commas, take turns."""

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        super().__init__(target, credentials, delivery)
        self._stub = sluice_pb2_grpc.RankingStub(self.channel)

    def rank(self, user: str, *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]) -> pb.RankResponse:
        """`seconds` is the deadline, `tenant` whose share of the server this is. Raises RankingFailed."""
        return self.call(self._stub.Rank, rank_request(user, asked), seconds, tenant, hedge=True)

    def why_not(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]
    ) -> pb.WhyNotResponse:
        """The slate that `rank` would answer, and the stage that has dropped each of the items. Raises
        RankingFailed."""
        request = pb.WhyNotRequest(request=rank_request(user, asked), item_ids=items)
        return self.call(self._stub.WhyNot, request, seconds, tenant, hedge=True)

    def score(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[ScoreAsked]
    ) -> pb.ScoreResponse:
        """Probabilities of the items, in their order; `features` describe those that the bundle does not know."""
        return self.call(self._stub.Score, score_request(user, items, asked), seconds, tenant, hedge=True)


class AsyncRankingClient(AsyncConnection):
    """`async with AsyncRankingClient("localhost:50051") as client: await client.rank("u1")`; else as RankingClient."""

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        super().__init__(target, credentials, delivery)
        self._stub: Any = sluice_pb2_grpc.RankingStub(self.channel)

    async def rank(
        self, user: str, *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]
    ) -> pb.RankResponse:
        """As RankingClient.rank."""
        request = rank_request(user, asked)
        found: pb.RankResponse = await self.call(self._stub.Rank, request, seconds, tenant, hedge=True)
        return found

    async def why_not(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[Asked]
    ) -> pb.WhyNotResponse:
        """As RankingClient.why_not."""
        request = pb.WhyNotRequest(request=rank_request(user, asked), item_ids=items)
        found: pb.WhyNotResponse = await self.call(self._stub.WhyNot, request, seconds, tenant, hedge=True)
        return found

    async def score(
        self, user: str, items: Sequence[str], *, tenant: str = "", seconds: float = 1.0, **asked: Unpack[ScoreAsked]
    ) -> pb.ScoreResponse:
        """As RankingClient.score."""
        request = score_request(user, items, asked)
        found: pb.ScoreResponse = await self.call(self._stub.Score, request, seconds, tenant, hedge=True)
        return found


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
        context=sent(asked.get("context")),
        filters=_filters(asked.get("filters")),
        excluded=_filters(asked.get("excluded")),
        ranges=_ranges(asked.get("ranges")),
        features=_described(asked.get("features"), asked.get("bids")),
        placements=[placement.message() for placement in asked.get("placements", ())],
    )
    recent = asked.get("recent_items")
    if recent is not None:
        request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent))
    times, columns = asked.get("recent_times"), asked.get("recent_columns")
    if times or columns:
        request.recent_events.CopyFrom(pb.RecentEvents(times=times, columns=_filters(columns)))
    return request


def score_request(user: str, items: Sequence[str], asked: ScoreAsked) -> pb.ScoreRequest:
    """As it is sent."""
    request = pb.ScoreRequest(user_id=user, item_ids=items, context=sent(asked.get("context")),
                              features=_described(asked.get("features"), None))
    recent = asked.get("recent_items")
    if recent is not None:
        request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent))
    return request


def sent(values: Values | None) -> dict[str, pb.Value]:
    return {name: to_value(value) for name, value in (values or {}).items()}


def moment(time: datetime | None) -> Timestamp | None:
    """Of a time with a zone; one without is taken for UTC."""
    if time is None:
        return None
    made = Timestamp()
    made.FromDatetime(time)
    return made


def _listed(candidates: Sequence[str] | None) -> pb.CandidateList | None:
    return None if candidates is None else pb.CandidateList(item_ids=candidates)


def _filters(filters: Mapping[str, Sequence[str]] | None) -> dict[str, pb.Values]:
    return {name: pb.Values(values=values) for name, values in (filters or {}).items()}


def _ranges(ranges: Mapping[str, Bounds] | None) -> dict[str, pb.Range]:
    return {name: pb.Range(at_least=least, at_most=most) for name, (least, most) in (ranges or {}).items()}


def _described(
    features: Mapping[str, Values] | None, bids: Mapping[str, float] | None
) -> dict[str, pb.Features]:
    items = {**(features or {}), **(bids or {})}
    return {item: pb.Features(values=sent((features or {}).get(item)), bid=(bids or {}).get(item)) for item in items}
