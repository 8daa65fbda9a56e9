"""A balancer before a server of one's own, whose calls of the Ranking service last until they are let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc
import pytest

from contracts.errors import ConfigError
from serving.access.tls import TlsFiles
from serving.balancer.balancer import Balancer, program
from serving.balancer.configuration import BalancerPlan
from serving.server.port_takeover import reserved


def _is_installed() -> bool:
    with suppress(ConfigError):
        return bool(program())
    return False


needs_haproxy = pytest.mark.skipif(not _is_installed(), reason="haproxy is not installed (make haproxy)")
RANK, RECORD = "/sluice.v1.Ranking/Rank", "/sluice.v1.Events/RecordEvents"
WAIT_SECONDS = 20.0
UNKNOWN = "unknown"  # how tokens begin that the server does not know


class Balanced:
    """`balancer` stands before a server that holds every call of Ranking, and answers the others at once, with what
    the metadata x-forwarded-for says."""

    def __init__(self, balancer: Balancer, channel: grpc.aio.Channel, port: int) -> None:
        self.balancer, self._channel, self.port = balancer, channel, port
        self.held = 0
        self.release = asyncio.Event()

    async def rank(self, seconds: float | None = None, tenant: str = "", token: str = "", size: int = 0) -> str:
        """The status that it ends in; its request has `size` bytes."""
        metadata = [("sluice-tenant", tenant)] * bool(tenant) + [("authorization", f"Bearer {token}")] * bool(token)
        try:
            await self._channel.unary_unary(RANK)(bytes(size), timeout=seconds, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            self.said = error.details() or ""
            return error.code().name
        return "OK"

    async def record(self, *metadata: tuple[str, str]) -> str:
        """What the server has read of who forwarded it."""
        found: bytes = await self._channel.unary_unary(RECORD)(b"", timeout=WAIT_SECONDS, metadata=metadata)
        return found.decode()

    async def begin(self, calls: int, seconds: float | None = None, tenant: str = "") -> list[asyncio.Task[str]]:
        """So many one after the other, each once the one before is held or refused."""
        begun = []
        for _ in range(calls):
            before = self.held
            begun.append(asyncio.create_task(self.rank(seconds, tenant)))
            while self.held == before and not begun[-1].done():
                await asyncio.sleep(0.002)
        return begun


def open_channel(port: int, credentials: grpc.ChannelCredentials | None = None) -> grpc.aio.Channel:
    """A connection of its own."""
    target, own = f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]
    if credentials is None:
        return grpc.aio.insecure_channel(target, own)
    return grpc.aio.secure_channel(target, credentials, own)


@asynccontextmanager
async def balanced(
    pace: float, gated: bool = False, tls: TlsFiles | None = None, credentials: grpc.ChannelCredentials | None = None,
    deadline: float = 1.0,
) -> AsyncIterator[Balanced]:
    """Of one worker, which takes `pace` seconds for a call and gives it `deadline` where it has none; with `tls` its
    caller has `credentials`."""
    async def rank(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        if dict(context.invocation_metadata() or ()).get("authorization", "").startswith(f"Bearer {UNKNOWN}"):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED)
        made.held += 1
        await made.release.wait()
        return b""

    async def record(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return dict(context.invocation_metadata() or ())["x-forwarded-for"].encode()

    server = grpc.aio.server()
    for path, answer in ((RANK, rank), (RECORD, record)):
        service, method = path.strip("/").split("/")
        handlers = {method: grpc.unary_unary_rpc_method_handler(answer)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    with reserved("127.0.0.1", 0) as port:
        plan = BalancerPlan("127.0.0.1", port, server.add_insecure_port("127.0.0.1:0"), 1, gated, tls)
        await server.start()
        balancer = Balancer(plan, pace, deadline)
        try:
            async with open_channel(port, credentials) as channel:
                made = Balanced(balancer, channel, port)
                yield made
                made.release.set()
        finally:
            balancer.close()
            await server.stop(None)
