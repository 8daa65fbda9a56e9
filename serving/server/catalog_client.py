"""Clients of changes of items: one call a batch, blocking or asynchronous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.errors import SluiceError
from contracts.shown import shown
from serving.access.client_credentials import ClientCredentials
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.query import ContextValue
from serving.server.client import moment, sent
from serving.server.connection import AsyncConnection, Connection
from serving.server.delivery import ONCE, Delivery

SECONDS = 10.0


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
        return pb.Change(item_id=self.item, version=self.version, event_time=moment(self.event_time))


Items = Sequence[ItemChange]


class CatalogClient(Connection):
    """`with CatalogClient("localhost:50051") as client: client.withdraw([ItemChange(item="i", version=1)])`.

    Every call raises RankingFailed with gRPC's status, and SluiceError where a bid or stock is left out. A batch that
    is sent again, by a `delivery` of several attempts too, changes nothing more: what the first had applied is answered
    as superseded.
    """

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        super().__init__(target, credentials, delivery)
        self._stub = sluice_pb2_grpc.CatalogStub(self.channel)

    def upsert(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        """Items as they are from now on."""
        return self.call(self._stub.Upsert, _upserts(items), seconds)

    def withdraw(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        """Not shown again until they are upserted."""
        return self.call(self._stub.Withdraw, _withdrawals(items), seconds)

    def set_bids(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        return self.call(self._stub.SetBids, _bids(items), seconds)

    def set_stock(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        return self.call(self._stub.SetStock, _stock(items), seconds)

    def status(self, seconds: float = SECONDS) -> pb.CatalogStatus:
        """Of the process that answers."""
        return self.call(self._stub.Status, pb.CatalogStatusRequest(), seconds)


class AsyncCatalogClient(AsyncConnection):
    """The same, awaited."""

    def __init__(
        self, target: str, credentials: ClientCredentials | None = None, delivery: Delivery = ONCE
    ) -> None:
        super().__init__(target, credentials, delivery)
        self._stub: Any = sluice_pb2_grpc.CatalogStub(self.channel)

    async def upsert(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        return await self.call(self._stub.Upsert, _upserts(items), seconds)

    async def withdraw(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        return await self.call(self._stub.Withdraw, _withdrawals(items), seconds)

    async def set_bids(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        return await self.call(self._stub.SetBids, _bids(items), seconds)

    async def set_stock(self, items: Items, seconds: float = SECONDS) -> pb.ChangeResponse:
        return await self.call(self._stub.SetStock, _stock(items), seconds)

    async def status(self, seconds: float = SECONDS) -> pb.CatalogStatus:
        return await self.call(self._stub.Status, pb.CatalogStatusRequest(), seconds)


def _upserts(items: Items) -> pb.UpsertRequest:
    return pb.UpsertRequest(items=[
        pb.ItemUpsert(change=one.head(), bid=one.bid, stock=one.stock, values=sent(one.values)) for one in items])


def _withdrawals(items: Items) -> pb.WithdrawRequest:
    return pb.WithdrawRequest(items=[one.head() for one in items])


def _bids(items: Items) -> pb.SetBidsRequest:
    return pb.SetBidsRequest(items=[pb.ItemBid(change=one.head(), bid=_given(one, "bid", one.bid)) for one in items])


def _stock(items: Items) -> pb.SetStockRequest:
    return pb.SetStockRequest(items=[
        pb.ItemStock(change=one.head(), stock=_given(one, "stock", one.stock)) for one in items])


def _given(change: ItemChange, name: str, number: float | None) -> float:
    """None is not sent as 0, which would sell the item out."""
    if number is None:
        raise SluiceError(f"the change of {shown(change.item)} has no {name}; give one")
    return number
