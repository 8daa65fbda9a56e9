from __future__ import annotations

import asyncio
import ctypes
import math
import time
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from serving.native.native_call import NativeCall, metadatum

FLAT = b"".join(len(part).to_bytes(4, "little") + part for part in (
    b"name", b"value", b"name", b"second", b"raw-bin", b"\0\xff", b"odd", b"\xff\xfe"))


class Functions:
    """Of the library: keeps what was finished, and says FLAT as metadata."""

    def __init__(self) -> None:
        self.finished: list[tuple[Any, ...]] = []
        self.reads, self.asked, self._flat = 0, 0, ctypes.create_string_buffer(FLAT, len(FLAT))

    def call_finish(self, *told: Any) -> None:
        self.finished.append(told[2:])

    def call_read(self, *_: Any) -> None:
        self.reads += 1

    def call_metadata(self, _: int, size: Any) -> int:
        self.asked += 1
        ctypes.cast(size, ctypes.POINTER(ctypes.c_int64))[0] = len(FLAT)
        return ctypes.addressof(self._flat)

    def call_peer(self, _: int) -> bytes:
        return b"ipv4:1.2.3.4:5"


def call(functions: Functions, deadline: float = math.inf) -> NativeCall:
    return NativeCall(cast(ctypes.PyDLL, functions), 1, 2, "/a/B", deadline)


def test_a_message_that_is_here_is_read_without_asking_and_the_next_is_asked_for() -> None:
    async def read() -> list[Any]:
        functions = Functions()
        one = call(functions)
        one.received(b"first")
        found = [one.has_message, await one.read(), functions.reads]
        asyncio.get_running_loop().call_later(0.01, one.received, grpc.aio.EOF)
        return [*found, await one.read() is grpc.aio.EOF, functions.reads]

    assert asyncio.run(read()) == [True, b"first", 0, True, 1]


def test_the_first_message_is_waited_for_without_asking() -> None:
    async def read() -> tuple[Any, int]:
        functions = Functions()
        one = call(functions)
        one.parse = bytes.decode
        asyncio.get_running_loop().call_later(0.01, one.received, b"late")
        return await one.read(), functions.reads

    assert asyncio.run(read()) == ("late", 0)


def test_it_is_finished_once_with_what_was_set() -> None:
    functions = Functions()
    one = call(functions)
    one.set_trailing_metadata((("key", "value"),))
    one.finish(b"answer")
    one.finish(b"another")
    ((message, size, code, details, details_size, trailing, trailing_size),) = functions.finished
    assert (message, size, code, details, details_size) == (b"answer", 6, 0, b"", 0)
    assert trailing == b"\3\0\0\0key\5\0\0\0value"
    assert trailing_size == len(trailing)
    assert one.done()


def test_an_abort_sends_no_message_and_ends_the_handler() -> None:
    functions = Functions()
    one = call(functions)
    with pytest.raises(grpc.aio.AbortError):
        asyncio.run(one.abort_with_status(cast(grpc.Status, SimpleNamespace(
            code=grpc.StatusCode.NOT_FOUND, details="ä", trailing_metadata=None))))
    assert functions.finished[0][:5] == (None, 0, 5, "ä".encode(), 2)
    assert one.code() is grpc.StatusCode.NOT_FOUND


def test_metadata_are_text_but_for_binary_ones_and_what_is_no_text() -> None:
    functions = Functions()
    one = call(functions)
    assert one.invocation_metadata() == (
        ("name", "value"), ("name", "second"), ("raw-bin", b"\0\xff"), ("odd", b"\xff\xfe"))
    assert (metadatum(one, "name"), metadatum(one, "none")) == ("value", None)
    assert functions.asked == 1


def test_one_that_has_ended_is_not_looked_at_any_more() -> None:
    functions = Functions()
    one, told = call(functions), list[str]()
    one.add_done_callback(lambda context: told.append(context.peer()))
    one.ended(cancelled=True)
    assert told == ["ipv4:1.2.3.4:5"]
    assert one.cancelled()
    assert one.invocation_metadata() == ()
    assert functions.asked == 0


def test_one_whose_caller_goes_before_it_has_begun_is_finished() -> None:
    functions = Functions()
    one = call(functions)
    one.cancel()
    assert functions.finished[0][2] == grpc.StatusCode.CANCELLED.value[0]


def test_the_time_left_is_none_without_a_deadline_and_never_below_nothing() -> None:
    functions = Functions()
    assert call(functions).time_remaining() is None
    assert call(functions, time.monotonic() - 1).time_remaining() == 0.0
    left = call(functions, time.monotonic() + 5).time_remaining()
    assert left is not None
    assert 4 < left <= 5
