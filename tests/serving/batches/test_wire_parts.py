"""What a message holds is told from its bytes as it would be parsed, and no further than it takes to say too much."""

from __future__ import annotations

import pytest
from google.protobuf.internal.encoder import _VarintBytes
from google.protobuf.message import DecodeError, Message

from serving.batches.wire_parts import DEEPEST, fields_of, parts_of
from serving.proto import sluice_pb2 as pb

ITEM = pb.ItemUpsert(
    change=pb.Change(item_id="i", version=2**40), bid=0.5,
    values={"a": pb.Value(text="x"), "b": pb.Value(list=pb.ValueList(values=[pb.Value(flag=True)] * 3))})


@pytest.mark.parametrize(("sent", "count"), [
    (b"", 0), (b"\x0a\x00" * 3, 3), (b"\x0a\x03\x0a\x01x" * 2, 2), (b"\x08\xff\x01\x0a\x00", 2),
    (b"\x09" + b"\x0a" * 8 + b"\x0d" + b"\x0a" * 4, 2), (b"\x82\x7d\x00\x0a\x00", 2),
    (b"\x0b\x0a\x00\x0c", 3), (b"\x0a" + b"\xff" * 20, 1), (b"\x0a", 1), (b"\xff", 1)])
def test_fields_at_the_top_are_counted_of_every_kind(sent: bytes, count: int) -> None:
    """Lengths, numbers, fixed ones of 8 and 4 bytes, a tag of two bytes, a group, damage."""
    assert fields_of(sent, 100) == count


def test_no_more_are_counted_than_tell() -> None:
    assert fields_of(b"\x0a\x00" * 520_000, 10) == 11
    assert parts_of(b"\x0a\x00" * 520_000, pb.UpsertRequest.DESCRIPTOR, 10) > 10


def test_fields_are_those_that_are_parsed() -> None:
    batch = pb.RecordEventsRequest(events=[pb.Event(event_id="e" * size) for size in (0, 1, 127, 128, 20_000)])
    assert fields_of(batch.SerializeToString(), 100) == 5


@pytest.mark.parametrize(("message", "count"), [
    (pb.UpsertRequest(), 0),
    (pb.UpsertRequest(items=[ITEM]), 1 + 1 + 2 + 2 + 1 + 3),  # item, change, entries, values, list, its values
    (pb.UpsertRequest(items=[ITEM, pb.ItemUpsert(), ITEM]), 21),
    (pb.RecordEventsRequest(events=[pb.Event(event_id="e" * 300, columns={"a": pb.Value(text="x")})]), 3),
    (pb.RankRequest(candidates=["a", "b", ""], filters={"f": pb.Values(values=["a", "b"])},
                    ranges={"r": pb.Range(at_least=1)}), 3 + 4 + 2),  # a tag of two bytes
])
def test_parts_are_messages_and_listed_texts_however_deep(message: Message, count: int) -> None:
    assert parts_of(message.SerializeToString(), message.DESCRIPTOR, 100) == count


@pytest.mark.parametrize("sent", [b"\x0a\x05a", b"\x0a\x03\x12\x05a", b"\xff"])
def test_what_is_no_message_is_said(sent: bytes) -> None:
    with pytest.raises(DecodeError):
        parts_of(sent, pb.UpsertRequest.DESCRIPTOR, 100)


@pytest.mark.parametrize(("deep", "count"), [(20, 40), (400, DEEPEST + 1)])
def test_lists_within_lists_are_counted_as_deep_as_is_parsed(deep: int, count: int) -> None:
    value = pb.Value().SerializeToString()
    for _ in range(deep):  # by hand: protobuf itself nests no deeper than it parses
        inner = b"\x0a" + _VarintBytes(len(value)) + value
        value = b"\x2a" + _VarintBytes(len(inner)) + inner
    assert parts_of(value, pb.Value.DESCRIPTOR, 1000) == count
