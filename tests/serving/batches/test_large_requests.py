"""Bytes that large requests hold, by caller, until their calls have ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import grpc
import pytest

from serving.batches.large_requests import MOST_HELD, LargeRequests
from serving.batches.places import NoPlace

LARGEST = 100


class Ended:
    """A call of `who`, as far as it is asked here."""

    def __init__(self, who: str) -> None:
        self.who, self._then = who, list[Callable[[Any], None]]()

    def add_done_callback(self, then: Callable[[Any], None]) -> None:
        self._then.append(then)

    def end(self) -> None:
        for then in self._then:
            then(self)


def of(call: Ended) -> grpc.aio.ServicerContext:
    return cast(grpc.aio.ServicerContext, call)


def named(context: grpc.aio.ServicerContext) -> str:
    return cast(Ended, context).who


def test_what_one_caller_holds_leaves_room_for_others_and_is_given_back() -> None:
    requests = LargeRequests(LARGEST, named)
    calls = [Ended("a") for _ in range(MOST_HELD // 4)]
    for call in calls:
        requests.hold(LARGEST, of(call))
    with pytest.raises(NoPlace, match="wait for their answers of this caller alone"):
        requests.hold(LARGEST, of(Ended("a")))
    other = Ended("b")
    requests.hold(LARGEST, of(other))
    for ended in (other, calls[0]):
        ended.end()
    requests.hold(LARGEST, of(Ended("a")))
    requests.close()


def test_they_are_read_in_turns_beside_the_event_loop() -> None:
    async def drive() -> None:
        requests, here = LargeRequests(LARGEST, named), threading.get_ident()
        assert await requests.read(threading.get_ident, of(Ended("a"))) != here
        with pytest.raises(ZeroDivisionError):
            await requests.read(lambda: 1 // 0, of(Ended("a")))
        assert requests.waiting == 0
        requests.close()

    asyncio.run(drive())
