"""As much of a `grpc.aio.Server` as serving/ needs, on gRPC's own C++ server (`native_server.cpp`).

A call of `grpc.aio` that does nothing takes 0.2 ms, most of it on the way between gRPC's threads and the event loop;
here 0.09: HTTP/2 is one thread's work without the interpreter, calls come to the loop in batches with their messages,
and an answer is one function. Without TLS.
"""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import grpc

from serving.native import native_library
from serving.native.native_call import Metadata, NativeCall, requests_of
from serving.native.native_library import GateSettings, Told, library

CALL, MESSAGE, NO_MESSAGE, WRITTEN, CANCELLED, ENDED, REFUSED = range(7)  # as in the C++
ROOM = 64  # records that are taken at once
UNBOUNDED = 2**31 - 1
UNPACKED = ("grpc.compression_enabled_algorithms_bitset", 1)  # alone: it looks at the size of what it has unpacked
LOOK_SECONDS = 0.1
CLOSING_SECONDS = 1.0  # of handlers whose calls are over
log = logging.getLogger("sluice.serving")


class Details(NamedTuple):
    """By which a handler is chosen, as of grpc.HandlerCallDetails."""

    method: str
    invocation_metadata: Metadata


class RankingGate(NamedTuple):
    """Calls of these methods of the `service` that would wait in vain are refused without the interpreter
    (`ranking_gate.h`): `pace` tells how many seconds each call under way makes others wait, until answers have told it,
    `longest` is how many any may wait, `otherwise` how much time one has that names no deadline. The metadata `tenant`
    names whose it is; `known_alone`: whoever is known by it. `refused` is told of them, by method and number."""

    service: str
    methods: Sequence[str]
    tenant: str
    longest: float
    otherwise: float
    known_alone: bool
    pace: Callable[[], float]
    refused: Callable[[str, int], None]


class NativeServer:
    """Belongs to one event loop. `most` calls may be open at once; what is more is refused without the interpreter."""

    def __init__(
        self, options: Sequence[tuple[str, int]] = (), most: int | None = None,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (), gate: RankingGate | None = None,
    ) -> None:
        found = library()
        if found is None:
            raise RuntimeError("gRPC's C++ library is not on this machine (Debian: libgrpc++-dev)")
        self._functions, self._options, self._most = found, (*options, UNPACKED), most or UNBOUNDED
        self._interceptors, self._generic = interceptors, list[grpc.GenericRpcHandler]()
        self._gate = gate
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self._known = dict[str, grpc.RpcMethodHandler]()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._records, self._calls, self._server = (Told * ROOM)(), dict[int, NativeCall](), 0

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._generic.extend(handlers)

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """Generated code gives the same handlers as generic ones; those are taken."""

    def add_insecure_port(self, address: str) -> int:
        """The port, on which calls are taken from now on and answered once the server is started. Raises RuntimeError
        where it cannot be had."""
        names = (ctypes.c_char_p * len(self._options))(*(name.encode() for name, _ in self._options))
        values = (ctypes.c_int32 * len(self._options))(*(value for _, value in self._options))
        port, gate = ctypes.c_int32(), _told(self._gate)
        server = self._functions.server_begun(address.encode(), self._wake, self._most, names, values,
                                              len(self._options), ctypes.byref(gate), ctypes.byref(port))
        if not server:
            os.close(self._wake)
            raise RuntimeError(f"failed to bind to {address}")
        self._server = server
        return port.value

    async def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._wake, self._take)
        if self._gate is not None:
            self._look(self._gate)

    async def stop(self, grace: float | None) -> None:
        """No call is taken any more; those under way have so many seconds."""
        if not self._server or self._stopping:
            return
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(native_library.stop, self._server, grace or 0.0)
        if tasks := [call.task for call in self._calls.values() if call.task is not None]:
            await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
        self._functions.server_look(self._server, 0.0)
        self._take()
        self._take()  # of calls that were new a moment ago
        asyncio.get_running_loop().remove_reader(self._wake)
        if not self._calls:  # else one still looks at its call, and its memory goes with the process
            self._functions.server_end(self._server)
            os.close(self._wake)
        self._server = 0

    def _look(self, gate: RankingGate) -> None:
        """From time to time: tells the gate the pace, and learns whom it has refused."""
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look, gate)
        self._functions.server_look(self._server, gate.pace())

    def _take(self) -> None:
        """What has happened since the last time."""
        taken = ROOM
        while taken == ROOM:
            taken = self._functions.server_told(self._server, self._records, ROOM)
            for record in self._records[:taken]:
                try:
                    self._happened(record)
                except Exception:  # of what follows a call: the others are not to wait for ever
                    log.exception("something of a call has failed")

    def _happened(self, record: Told) -> None:
        kind, number = record.kind, record.call
        if kind == CALL:
            call = NativeCall(self._functions, self._server, number, _method(record), record.deadline)
            if record.size >= 0:
                call.received(ctypes.string_at(record.data, record.size))
            self._calls[number] = call
            call.task = asyncio.get_running_loop().create_task(self._answer(call))
        elif kind == ENDED:
            self._calls.pop(number).ended(bool(record.size))
        elif kind == MESSAGE:
            self._calls[number].received(ctypes.string_at(record.data, record.size))
        elif kind == NO_MESSAGE:
            self._calls[number].received(grpc.aio.EOF)
        elif kind == WRITTEN:
            self._calls[number].written()
        elif kind == CANCELLED:
            self._calls[number].cancel()
        elif self._gate is not None:
            self._gate.refused(_method(record).rpartition("/")[2], record.size)

    async def _answer(self, call: NativeCall) -> None:
        """One call from its handler's first line to its status."""
        call.begun = True
        try:
            handler = self._known.get(call.method) or await self._handler(call)
            if handler is None:
                await call.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
            call.finish(await _answered(handler, call))
        except grpc.aio.AbortError:
            pass
        except asyncio.CancelledError:
            call.set_code(grpc.StatusCode.CANCELLED)
            call.finish()
        except Exception as error:
            log.exception("a call of %s has failed", call.method)
            call.set_code(grpc.StatusCode.UNKNOWN)
            call.set_details(f"Unexpected {type(error)}: {error}")
            call.finish()

    async def _handler(self, call: NativeCall) -> grpc.RpcMethodHandler | None:
        """Of the call's method, as the interceptors will have it."""
        async def found(details: Any) -> grpc.RpcMethodHandler | None:
            return next(filter(None, (generic.service(details) for generic in self._generic)), None)

        chosen: Any = found
        for interceptor in reversed(self._interceptors):
            chosen = _before(interceptor, chosen)
        handler: grpc.RpcMethodHandler | None = await chosen(Details(call.method, call.invocation_metadata()))
        if handler is not None and not self._interceptors:
            self._known[call.method] = handler
        return handler


def _method(record: Told) -> str:
    return ctypes.string_at(record.method, record.method_size).decode("ascii", "replace")


def _told(gate: RankingGate | None) -> GateSettings:
    if gate is None:
        return GateSettings(None, 0, b"")
    names = [f"/{gate.service}/{method}".encode() for method in gate.methods]
    return GateSettings(ctypes.cast((ctypes.c_char_p * len(names))(*names), ctypes.c_void_p), len(names),
                        gate.tenant.encode(), gate.longest, gate.otherwise, int(gate.known_alone))


def _before(interceptor: grpc.aio.ServerInterceptor, following: Any) -> Any:
    return lambda details: interceptor.intercept_service(following, details)


async def _answered(handler: grpc.RpcMethodHandler, call: NativeCall) -> bytes | None:
    """The answer of one that is not streamed; what is streamed is written."""
    call.parse, call.serialise = handler.request_deserializer or bytes, handler.response_serializer or bytes
    behaviour = getattr(handler, _kind(handler))
    request = requests_of(call) if handler.request_streaming else await call.read()
    if request is grpc.aio.EOF:
        await call.abort(grpc.StatusCode.INTERNAL, "the call ended without a request; send one")
    answer = behaviour(request, call)
    if not handler.response_streaming:
        return call.serialise(await answer)
    if inspect.isawaitable(answer):
        await answer
    else:
        async for one in answer:
            await call.write(one)
    return None


def _kind(handler: grpc.RpcMethodHandler) -> str:
    ways = ("unary", "stream")
    return f"{ways[handler.request_streaming]}_{ways[handler.response_streaming]}"
