"""A service of every kind of call, and a server of it in a thread of the test's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import grpc

from serving.native.grpc_server import GrpcServer

SERVICE = "sluice.test.Echo"
TRAILING = (("said", "so"), ("said-bin", b"\0\xff"))
Context: TypeAlias = grpc.aio.ServicerContext


class Echo:
    """`held` calls of Hold end when it is set; `gone` counts those whose callers have left; `seen` is what contexts
    have said, `ended` how many calls have."""

    def __init__(self) -> None:
        self.held, self.gone, self.ended, self.holding = asyncio.Event(), 0, 0, 0
        self.seen: list[dict[str, Any]] = []

    async def say(self, message: bytes, context: Context) -> bytes:
        context.add_done_callback(self._ended)
        self.seen.append({"metadata": dict(context.invocation_metadata() or ()), "peer": context.peer(),
                          "left": context.time_remaining()})
        context.set_trailing_metadata(TRAILING)
        return message

    async def hold(self, message: bytes, context: Context) -> bytes:
        context.add_done_callback(self._ended)
        self.holding += 1
        try:
            await self.held.wait()
        except asyncio.CancelledError:
            self.gone += 1
            raise
        finally:
            self.holding -= 1
        return message

    async def refuse(self, message: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not so: ä", TRAILING)
        return message

    async def unknown(self, message: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "by a token that nobody knows")
        return message

    async def fail(self, message: bytes, context: Context) -> bytes:
        raise ValueError("of a handler")

    async def coded(self, message: bytes, context: Context) -> bytes:
        context.set_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
        context.set_details("none left")
        return message

    async def parts(self, message: bytes, context: Context) -> AsyncIterator[bytes]:
        for place in range(len(message)):
            yield message[place : place + 1]

    async def written(self, message: bytes, context: Context) -> None:
        for place in range(len(message)):
            await context.write(message[place : place + 1])

    async def joined(self, messages: AsyncIterator[bytes], context: Context) -> bytes:
        return b"".join([message async for message in messages])

    async def first(self, _: AsyncIterator[bytes], context: Context) -> bytes:
        return bytes(await context.read()) + (b"." if await context.read() is grpc.aio.EOF else b"!")

    async def doubled(self, messages: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        async for message in messages:
            yield 2 * message

    def _ended(self, _: Context) -> None:
        self.ended += 1

    @property
    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        one, parted = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        return {"Say": one(self.say), "Hold": one(self.hold), "Refuse": one(self.refuse), "Fail": one(self.fail),
                "Coded": one(self.coded), "Unknown": one(self.unknown), "Parts": parted(self.parts),
                "Written": parted(self.written),
                "Joined": grpc.stream_unary_rpc_method_handler(self.joined),
                "First": grpc.stream_unary_rpc_method_handler(self.first),
                "Doubled": grpc.stream_stream_rpc_method_handler(self.doubled)}


class Running:
    """A server on a port of its own; `of_loop` runs there. Calls that nobody keeps are cancelled."""

    def __init__(self, echo: Echo, loop: asyncio.AbstractEventLoop, server: GrpcServer, port: int) -> None:
        self.echo, self.loop, self.server, self.target = echo, loop, server, f"127.0.0.1:{port}"
        self.kept: list[grpc.Future] = []

    def of_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def release(self) -> None:
        """Those that hold."""
        self.loop.call_soon_threadsafe(self.echo.held.set)


@contextmanager
def running(made: Callable[[], GrpcServer]) -> Iterator[Running]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Running:
        echo, server = Echo(), made()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, echo.handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return Running(echo, loop, server, port)

    found = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    try:
        yield found
    finally:
        found.of_loop(found.server.stop(0.0))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


def method(channel: grpc.Channel, name: str, kind: str = "unary_unary") -> Any:
    """Of the service, which takes bytes and gives them."""
    return getattr(channel, kind)(f"/{SERVICE}/{name}")
