"""One call of the native server as a handler sees it: what `grpc.aio` calls a ServicerContext."""

from __future__ import annotations

import asyncio
import ctypes
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, NoReturn

import grpc

Metadata = tuple[tuple[str, str | bytes], ...]
BINARY, SIZE = "-bin", struct.Struct("=I")


class NativeCall(grpc.aio.ServicerContext):
    """Belongs to the event loop. `deadline` is a time of `time.monotonic`, inf for none."""

    def __init__(self, functions: ctypes.PyDLL, server: int, call: int, method: str, deadline: float) -> None:
        self._functions, self._server, self._call = functions, server, call
        self.method, self._deadline = method, deadline
        self._messages: list[Any] = []
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._first, self._finished, self._gone, self._ended = True, False, False, False
        self._code, self._details = grpc.StatusCode.OK, ""
        self._trailing: Metadata = ()
        self._metadata: Metadata | None = None
        self._peer: str | None = None
        self._callbacks: list[Callable[[grpc.aio.ServicerContext], None]] = []
        self.task: asyncio.Task[None] | None = None
        self.begun = False
        self.parse: Callable[[bytes], Any] = bytes
        self.serialise: Callable[[Any], bytes] = bytes

    # What the server tells it.

    def received(self, message: Any) -> None:
        """A message, or EOF."""
        self._messages.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def written(self) -> None:
        """The last write has come to an end."""
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    def cancel(self) -> None:
        """The caller has gone, or its time is over."""
        self._gone = True
        if self.task is not None:
            self.task.cancel()
        if not self.begun:  # nor will it be
            self.set_code(grpc.StatusCode.CANCELLED)
            self.finish()

    def ended(self, cancelled: bool) -> None:
        """Nothing of it is under way any more."""
        self._gone = self._gone or cancelled
        try:
            for work in self._callbacks:
                work(self)
        finally:
            self._ended = True

    # What a handler asks for.

    @property
    def has_message(self) -> bool:
        """The next read need not wait."""
        return bool(self._messages)

    async def read(self) -> Any:
        """The next message, or EOF."""
        while not self._messages:
            if self._ended:
                return grpc.aio.EOF
            if not self._first:
                self._functions.call_read(self._server, self._call)
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        self._first = False
        message = self._messages.pop()
        return message if message is grpc.aio.EOF else self.parse(message)

    async def write(self, message: Any) -> None:
        """Returns once gRPC has taken it. Raises AbortError where the call has been finished."""
        if self._finished or self._ended:
            raise grpc.aio.AbortError("the call has been finished")
        sent, self._writer = self.serialise(message), asyncio.get_running_loop().create_future()
        self._functions.call_write(self._server, self._call, sent, len(sent))
        await self._writer

    def finish(self, message: bytes | None = None) -> None:
        """With the code and details that are set; once."""
        if self._finished:
            return
        self._finished = True
        details, trailing = self._details.encode("utf-8", "replace"), _flat(self._trailing)
        code = self._code.value[0]
        sent = message if code == 0 else None
        self._functions.call_finish(self._server, self._call, sent, len(sent or b""), code, details, len(details),
                                    trailing, len(trailing))

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Iterable[Any] = ()) -> NoReturn:
        """Raises AbortError."""
        self._code, self._details = code, details
        self._trailing = (*self._trailing, *trailing_metadata)
        self.finish()
        raise grpc.aio.AbortError("the call has been ended by its handler")

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """Raises AbortError."""
        await self.abort(status.code, status.details, status.trailing_metadata or ())

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def set_details(self, details: str) -> None:
        self._details = details

    def set_trailing_metadata(self, trailing_metadata: Iterable[Any]) -> None:
        self._trailing = tuple(trailing_metadata)

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Metadata:
        return self._trailing

    def invocation_metadata(self) -> Metadata:
        """Of what is no UTF-8 the bytes."""
        if self._metadata is None:
            size = ctypes.c_int64()
            where = None if self._ended else self._functions.call_metadata(self._call, ctypes.byref(size))
            self._metadata = () if where is None else _pairs(ctypes.string_at(where, size.value))
        return self._metadata

    def value_of(self, name: str) -> str | bytes | None:
        """The first metadatum of this name, None without one."""
        if self._metadata is not None or self._ended:
            return next((value for key, value in self.invocation_metadata() if key == name), None)
        size = ctypes.c_int64()
        where = self._functions.call_value(self._call, name.encode(), ctypes.byref(size))
        return None if where is None else _value(name, ctypes.string_at(where, size.value))

    def peer(self) -> str:
        if self._peer is None:
            self._peer = "" if self._ended else self._functions.call_peer(self._call).decode()
        return self._peer

    def peer_identities(self) -> None:
        return None

    def peer_identity_key(self) -> None:
        return None

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        return {}

    def time_remaining(self) -> float | None:
        return None if self._deadline == float("inf") else max(self._deadline - time.monotonic(), 0.0)

    def add_done_callback(self, callback: Callable[[grpc.aio.ServicerContext], None]) -> None:
        self._callbacks.append(callback)

    def cancelled(self) -> bool:
        return self._gone

    def done(self) -> bool:
        return self._finished or self._gone

    def set_compression(self, compression: grpc.Compression) -> None:
        """Answers go out as they are."""

    def disable_next_message_compression(self) -> None:
        """None is compressed."""

    async def send_initial_metadata(self, initial_metadata: Iterable[Any]) -> None:
        """Raises NotImplementedError: what there is to say goes into the trailing ones."""
        raise NotImplementedError("the native server sends no initial metadata")


def metadatum(context: grpc.aio.ServicerContext, name: str) -> str | bytes | None:
    """The first of this name, None without one; of a native call without a look at the others."""
    if isinstance(context, NativeCall):
        return context.value_of(name)
    return next((value for key, value in context.invocation_metadata() or () if key == name), None)


async def requests_of(call: NativeCall) -> AsyncIterator[Any]:
    """All messages of a call."""
    while (message := await call.read()) is not grpc.aio.EOF:
        yield message


def _flat(metadata: Metadata) -> bytes:
    """Each part behind its size."""
    parts = [part if isinstance(part, bytes) else part.encode() for pair in metadata for part in pair]
    return b"".join(SIZE.pack(len(part)) + part for part in parts)


def _pairs(flat: bytes) -> Metadata:
    """What `_flat` makes flat."""
    parts, place = list[bytes](), 0
    while place < len(flat):
        begin = place + SIZE.size
        place = begin + SIZE.unpack_from(flat, place)[0]
        parts.append(flat[begin:place])
    keys = (key.decode("ascii", "replace") for key in parts[::2])
    return tuple((key, _value(key, value)) for key, value in zip(keys, parts[1::2], strict=True))


def _value(key: str, value: bytes) -> str | bytes:
    if key.endswith(BINARY):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
