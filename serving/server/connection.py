"""A channel to a server, or to several, as clients hold it. A call that fails raises `RankingFailed` with gRPC's status
and, where the server sent them, the offending fields."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from contracts.errors import SluiceError
from serving.access.caller_name import TENANT
from serving.access.client_credentials import ClientCredentials
from serving.server.delivery import Delivery, hedged, hedged_async


class RankingFailed(SluiceError):
    """`code` is the name of gRPC's status, `fields` maps offending request fields to what is wrong with them."""

    def __init__(self, code: str, message: str, fields: dict[str, str]) -> None:
        unsaid = [f"  {name}: {text}" for name, text in fields.items() if text not in message]
        super().__init__("\n".join([f"{code}: {message}", *unsaid]))
        self.code, self.fields = code, fields


class Connection:
    """`call` asks a method of a stub made over `channel`."""

    def __init__(self, target: str, credentials: ClientCredentials | None, delivery: Delivery) -> None:
        self._credentials, self._delivery = credentials or ClientCredentials(), delivery
        where = delivery.target(target)
        self.channel = self._credentials.channel(where, delivery.options(where))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()

    def wait_ready(self, seconds: float) -> None:
        """Raises grpc.FutureTimeoutError where nobody listens in time."""
        grpc.channel_ready_future(self.channel).result(timeout=seconds)

    def call(self, method: Any, request: Message, seconds: float, tenant: str = "", hedge: bool = False) -> Any:
        """`hedge`: it may be sent twice at once, where the delivery does so. Raises RankingFailed."""
        try:
            return hedged(method, request, seconds, _metadata(self._credentials, tenant),
                          self._delivery.hedge_seconds if hedge else None)
        except grpc.RpcError as error:
            raise failure(error) from None


class AsyncConnection:
    """The same, awaited."""

    def __init__(self, target: str, credentials: ClientCredentials | None, delivery: Delivery) -> None:
        self._credentials, self._delivery = credentials or ClientCredentials(), delivery
        where = delivery.target(target)
        options = delivery.options(where)
        self._credentials.check(where)
        self.channel = (grpc.aio.secure_channel(where, self._credentials.of_channel(), options=options)
                        if self._credentials.secure else grpc.aio.insecure_channel(where, options=options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.channel.close()

    async def call(self, method: Any, request: Message, seconds: float, tenant: str = "", hedge: bool = False) -> Any:
        """As Connection.call."""
        try:
            return await hedged_async(method, request, seconds, _metadata(self._credentials, tenant),
                                      self._delivery.hedge_seconds if hedge else None)
        except grpc.RpcError as error:
            raise failure(error) from None


def _metadata(credentials: ClientCredentials, tenant: str) -> tuple[tuple[str, str], ...]:
    """Who calls, and for whom."""
    return (*credentials.metadata, *(((TENANT, tenant),) if tenant else ()))


def failure(error: grpc.RpcError) -> RankingFailed:
    """What a call that failed is to its caller."""
    status = rpc_status.from_call(error)
    fields: dict[str, str] = {}
    for detail in status.details if status else ():
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            fields |= {violation.field: violation.description for violation in bad.field_violations}
    return RankingFailed(error.code().name, error.details() or "", fields)
