"""A body is bounded before anything is made of it, and a large one waits for its turn alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.types import Message

from serving.batches.batch_turns import BatchTurns
from serving.batches.places import NoPlace
from serving.gateway import failures
from serving.gateway.body import (
    FEW_PARTS,
    MOST_PARTS,
    BodyBounds,
    HungUp,
    NotJson,
    TooLarge,
    TooSlow,
    check_type,
    message,
    read,
)
from serving.proto import sluice_pb2 as pb


@pytest.fixture
def turns() -> Iterator[BatchTurns]:
    made = BatchTurns(most=2)
    yield made
    made.close()


def upsert(items: int) -> bytes:
    return b'{"items":[' + b",".join([b"{}"] * items) + b"]}"


def sent(*chunks: bytes, whole: bool = True) -> Request:
    """Without its last chunk where it is not `whole`."""
    waiting = [{"type": "http.request", "body": one, "more_body": True} for one in chunks]
    waiting += [{"type": "http.request", "body": b"", "more_body": False}] if whole else []

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_a_body_of_as_many_bytes_as_may_be_is_read() -> None:
    assert asyncio.run(read(sent(b"ab", b"cd"), BodyBounds(most_bytes=4))) == b"abcd"
    with pytest.raises(TooLarge, match="more than 3 bytes; send less"):
        asyncio.run(read(sent(b"ab", b"cd"), BodyBounds(most_bytes=3)))


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    with pytest.raises(TooSlow, match=r"more than 0.01 s to come; send less at once, or faster"):
        asyncio.run(read(sent(b"{", whole=False), BodyBounds(most_seconds=0.01)))


def test_a_caller_who_hangs_up_before_the_body_is_there_is_no_error() -> None:
    waiting: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return waiting.pop(0)

    with pytest.raises(HungUp) as caught:
        asyncio.run(read(Request({"type": "http", "method": "POST", "headers": []}, receive), BodyBounds()))
    assert failures.of_body(caught.value).status_code == 499


@pytest.mark.parametrize("told", ["application/json", "application/JSON; charset=utf-8"])
def test_json_may_be_called_so(told: str) -> None:
    check_type(Request({"type": "http", "headers": [(b"content-type", told.encode())]}))


@pytest.mark.parametrize("told", ["", "text/plain", "application/x-www-form-urlencoded", "text/plain;application/json"])
def test_what_is_called_otherwise_is_not_taken(told: str) -> None:
    with pytest.raises(NotJson, match="send JSON") as caught:
        check_type(Request({"type": "http", "headers": [(b"content-type", told.encode())]}))
    assert failures.of_body(caught.value).status_code == 415


def test_more_parts_than_may_be_are_not_parsed(turns: BatchTurns) -> None:
    with pytest.raises(TooLarge, match=f"the limit is {MOST_PARTS}; send less at once"):
        asyncio.run(message(b"," * (MOST_PARTS + 1) + b"no json", pb.UpsertRequest(), turns, "one"))


def test_a_large_body_waits_for_its_turn_and_a_small_one_for_nobody(turns: BatchTurns) -> None:
    may_go = threading.Event()

    async def small_before_large() -> int:
        before = asyncio.ensure_future(turns.take("other", may_go.wait))
        await asyncio.sleep(0)
        large = asyncio.ensure_future(message(upsert(FEW_PARTS), pb.UpsertRequest(), turns, "one"))
        await asyncio.sleep(0)
        small = await message(b'{"user_id": "u"}', pb.RankRequest(), turns, "one")
        with pytest.raises(NoPlace):
            await message(upsert(FEW_PARTS), pb.UpsertRequest(), turns, "one")
        waited = not large.done()
        may_go.set()
        assert waited
        assert small.user_id == "u"
        assert await before
        return len((await large).items)

    try:
        assert asyncio.run(small_before_large()) == FEW_PARTS
    finally:
        may_go.set()
