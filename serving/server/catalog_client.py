"""Changes of items, sent to a server: one blocking call a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from serving.access.client_credentials import ClientCredentials
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.query import ContextValue
from serving.request.wire_values import to_value
from serving.server.client import failure

Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True, kw_only=True)
class ItemChange:
    """`version` rises with every change of the item; `event_time` is when it came to be, None for now. The rest is of
    the call that takes it."""

    item: str
    version: int
    event_time: datetime | None = None
    values: Mapping[str, ContextValue] | None = None
    bid: float | None = None
    stock: float | None = None

    def head(self) -> pb.Change:
        """What every change says, as it is sent."""
        change = pb.Change(item_id=self.item, version=self.version)
        if self.event_time is not None:
            moment = Timestamp()
            moment.FromDatetime(self.event_time)
            change.event_time.CopyFrom(moment)
        return change


class CatalogClient:
    """`with CatalogClient("localhost:50051") as client: client.withdraw([ItemChange(item="i", version=1)])`. Every call
    raises RankingFailed with gRPC's status."""

    def __init__(self, target: str, credentials: ClientCredentials | None = None) -> None:
        self._credentials = credentials or ClientCredentials()
        self._channel = self._credentials.channel(target)
        self._stub = sluice_pb2_grpc.CatalogStub(self._channel)

    def __enter__(self) -> CatalogClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def upsert(self, items: Sequence[ItemChange], seconds: float = 10.0) -> pb.ChangeResponse:
        """Items as they are from now on."""
        return self._asked(self._stub.Upsert, pb.UpsertRequest(items=[
            pb.ItemUpsert(change=one.head(), bid=one.bid, stock=one.stock,
                          values={name: to_value(value) for name, value in (one.values or {}).items()})
            for one in items]), seconds)

    def withdraw(self, items: Sequence[ItemChange], seconds: float = 10.0) -> pb.ChangeResponse:
        """Not shown again until they are upserted."""
        return self._asked(self._stub.Withdraw, pb.WithdrawRequest(items=[one.head() for one in items]), seconds)

    def set_bids(self, items: Sequence[ItemChange], seconds: float = 10.0) -> pb.ChangeResponse:
        return self._asked(self._stub.SetBids, pb.SetBidsRequest(items=[
            pb.ItemBid(change=one.head(), bid=one.bid or 0.0) for one in items]), seconds)

    def set_stock(self, items: Sequence[ItemChange], seconds: float = 10.0) -> pb.ChangeResponse:
        return self._asked(self._stub.SetStock, pb.SetStockRequest(items=[
            pb.ItemStock(change=one.head(), stock=one.stock or 0.0) for one in items]), seconds)

    def status(self, seconds: float = 10.0) -> pb.CatalogStatus:
        """Of the process that answers."""
        return self._asked(self._stub.Status, pb.CatalogStatusRequest(), seconds)

    def _asked(self, method: Callable[..., Answer], request: Message, seconds: float) -> Answer:
        try:
            return method(request, timeout=seconds, metadata=self._credentials.metadata)
        except grpc.RpcError as error:
            raise failure(error) from None
