"""The smallest client: one blocking call with a deadline.

A call that fails raises `RankingFailed` with gRPC's status and, where the server sent them, the offending fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from contracts.errors import SluiceError
from serving.access.client_credentials import ClientCredentials
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.query import ContextValue
from serving.request.wire_values import to_value

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


class RankingClient:
    """`with RankingClient("localhost:50051") as client: client.rank("u1")`; without `credentials` in plain text."""

    def __init__(self, target: str, credentials: ClientCredentials | None = None) -> None:
        self._credentials = credentials or ClientCredentials()
        self._channel = self._credentials.channel(target)
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
        return (*self._credentials.metadata, *(((TENANT, tenant),) if tenant else ()))

    def rank(
        self,
        user: str,
        *,
        limit: int | None = None,
        context: Mapping[str, ContextValue] | None = None,
        candidates: Sequence[str] | None = None,
        filters: Mapping[str, Sequence[str]] | None = None,
        recent_items: Sequence[str] | None = None,
        skip_rerank: bool = False,
        reasons: bool = False,
        partial_ok: bool = True,
        features: Mapping[str, Mapping[str, ContextValue]] | None = None,
        bids: Mapping[str, float] | None = None,
        placements: Sequence[Placement] = (),
        tenant: str = "",
        request_id: str = "",
        seconds: float = 1.0,
    ) -> pb.RankResponse:
        """`seconds` is the deadline, `tenant` whose share of the server this is; `features` and `bids` describe
        candidates that the bundle does not know; the other arguments are the request's (docs/reference/grpc.md). Raises
        RankingFailed."""
        request = pb.RankRequest(
            user_id=user,
            limit=limit,
            candidate_list=_listed(candidates),
            skip_rerank=skip_rerank,
            reasons=reasons,
            partial_ok=partial_ok,
            request_id=request_id,
            context=_sent(context),
            filters=_filters(filters),
            features=_described(features, bids),
            placements=[placement.message() for placement in placements],
        )
        if recent_items is not None:
            request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent_items))
        try:
            return self._stub.Rank(request, timeout=seconds, metadata=self._metadata(tenant))
        except grpc.RpcError as error:
            raise _failure(error) from None

    def why_not(
        self,
        user: str,
        items: Sequence[str],
        *,
        limit: int | None = None,
        context: Mapping[str, ContextValue] | None = None,
        candidates: Sequence[str] | None = None,
        filters: Mapping[str, Sequence[str]] | None = None,
        recent_items: Sequence[str] | None = None,
        tenant: str = "",
        seconds: float = 1.0,
    ) -> pb.WhyNotResponse:
        """The stage that has dropped each of the items from the slate that `rank` would answer. Raises
        RankingFailed."""
        request = pb.RankRequest(user_id=user, limit=limit, candidate_list=_listed(candidates), context=_sent(context),
                                 filters=_filters(filters))
        if recent_items is not None:
            request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent_items))
        try:
            return self._stub.WhyNot(pb.WhyNotRequest(request=request, item_ids=items), timeout=seconds,
                                     metadata=self._metadata(tenant))
        except grpc.RpcError as error:
            raise _failure(error) from None

    def score(
        self,
        user: str,
        items: Sequence[str],
        *,
        context: Mapping[str, ContextValue] | None = None,
        features: Mapping[str, Mapping[str, ContextValue]] | None = None,
        recent_items: Sequence[str] | None = None,
        tenant: str = "",
        seconds: float = 1.0,
    ) -> pb.ScoreResponse:
        """Probabilities of the items, in their order; `features` describe those that the bundle does not know."""
        request = pb.ScoreRequest(
            user_id=user, item_ids=items, context=_sent(context), features=_described(features, None))
        if recent_items is not None:
            request.recent_items.CopyFrom(pb.RecentItems(item_ids=recent_items))
        try:
            return self._stub.Score(request, timeout=seconds, metadata=self._metadata(tenant))
        except grpc.RpcError as error:
            raise _failure(error) from None


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


def _failure(error: grpc.RpcError) -> RankingFailed:
    status = rpc_status.from_call(error)
    fields: dict[str, str] = {}
    for detail in status.details if status else ():
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            fields |= {violation.field: violation.description for violation in bad.field_violations}
    return RankingFailed(error.code().name, error.details() or "", fields)
