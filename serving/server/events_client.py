"""Clients of what happened to what was shown: one call a batch, blocking or asynchronous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from serving.access.client_credentials import ClientCredentials
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.query import ContextValue
from serving.server.client import moment, sent
from serving.server.connection import AsyncConnection, Connection
from serving.server.delivery import ONCE, Delivery

SECONDS = 10.0
KINDS = {"impression": pb.Event.IMPRESSION, "click": pb.Event.CLICK, "conversion": pb.Event.CONVERSION}


@dataclass(frozen=True, kw_only=True)
class ItemEvent:
    """`id` is the caller's: an event of an id that is known changes nothing. `time` None is when the server receives
    it; `columns` are further ones of the log."""

    id: str
    kind: Literal["impression", "click", "conversion"]
    user: str
    item: str
    request: str = ""
    time: datetime | None = None
    position: int | None = None
    bid: float | None = None
    columns: Mapping[str, ContextValue] | None = None

    def message(self) -> pb.Event:
        """As it is sent."""
        return pb.Event(event_id=self.id, kind=KINDS[self.kind], user_id=self.user, item_id=self.item,
                        request_id=self.request, event_time=moment(self.time), position=self.position, bid=self.bid,
                        columns=sent(self.columns))


class EventsClient(Connection):
    """`with EventsClient("localhost:50051") as client: client.record([ItemEvent(id="c1", kind="click", ...)])`.

    A batch may be sent again, by a `delivery` of several attempts too: what is known counts among the `repeats`.
    """

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        super().__init__(target, credentials, delivery)
        self._stub = sluice_pb2_grpc.EventsStub(self.channel)

    def record(self, events: Sequence[ItemEvent], seconds: float = SECONDS) -> pb.RecordEventsResponse:
        """On the server's disk when it returns, but for those in `errors`. Raises RankingFailed."""
        return self.call(self._stub.RecordEvents, _batch(events), seconds)


class AsyncEventsClient(AsyncConnection):
    """The same, awaited."""

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        super().__init__(target, credentials, delivery)
        self._stub: Any = sluice_pb2_grpc.EventsStub(self.channel)

    async def record(self, events: Sequence[ItemEvent], seconds: float = SECONDS) -> pb.RecordEventsResponse:
        """As EventsClient.record."""
        return await self.call(self._stub.RecordEvents, _batch(events), seconds)


def _batch(events: Sequence[ItemEvent]) -> pb.RecordEventsRequest:
    return pb.RecordEventsRequest(events=[one.message() for one in events])
