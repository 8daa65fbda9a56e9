"""Requests drawn from the proto by Hypothesis: every field of any value its type allows, and bytes that are no request.

    drawn        any fields, with texts that are known, empty, long, of control characters, of four bytes a letter;
                 numbers at the ends of their types, NaN and infinity; lists and maps of none, a few, as many as may be
                 and more
    spoilt       such a message with bytes flipped, cut, doubled or put in
    random       bytes
    flooded      one of the method's fields up to a message's size: 2-byte elements, which are the most memory for the
                 least message
    nested       the same flood of a field within a message of the request, however deep
    too large    beyond what the server reads

What is large is so by repeating a few drawn parts, up to about what the server reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from serving.proto import sluice_pb2 as pb

METHODS: dict[str, type[Message]] = {
    "Ranking/Rank": pb.RankRequest, "Ranking/Score": pb.ScoreRequest, "Ranking/WhyNot": pb.WhyNotRequest,
    "Events/RecordEvents": pb.RecordEventsRequest, "Catalog/Upsert": pb.UpsertRequest,
    "Catalog/Withdraw": pb.WithdrawRequest, "Catalog/SetBids": pb.SetBidsRequest,
    "Catalog/SetStock": pb.SetStockRequest, "Catalog/Status": pb.CatalogStatusRequest,
}
OF_A_USER = ("Ranking/Rank", "Ranking/Score")  # whose first field is the user's id
UNKNOWN = 15  # a field that no request has, for a request without any
KNOWN = ("u01", "i01", "i02", "device", "phone", "hour", "category", "brand", "music", "new", "top", "tags")
ODD = ("", "\0", "a\0b", "\n", "\x1b[31mred", "\u202e", "\U0001f600" * 20, "\ufffe", "../../victim", "x" * 513,
       "x" * 5000, "' OR 1=1", "%s%n", "null", "NaN", "x" * 80_000)
COUNTS = (0, 1, 1, 1, 2, 3, 8, 9, 50, 51, 200, 201, 257, 2001)
KINDS = ("drawn",) * 12 + ("spoilt",) * 4 + ("random", "flooded", "nested", "too large")
NUMBERS: dict[int, tuple[Any, ...]] = {
    FieldDescriptor.TYPE_INT64: (0, 1, 7, -1, 2**63 - 1, -(2**63)),
    FieldDescriptor.TYPE_INT32: (0, 1, -1, 999_999_999, 2**31 - 1, -(2**31)),
    FieldDescriptor.TYPE_ENUM: (0, 1, 2, 3, 9),
    FieldDescriptor.TYPE_UINT32: (0, 1, 3, 10, 11, 2**32 - 1),
    FieldDescriptor.TYPE_DOUBLE: (0.0, 1.0, -1.0, 7.5, float("nan"), float("inf"), float("-inf"), 1e308, 5e-324),
    FieldDescriptor.TYPE_BOOL: (False, True),
}
DEEPEST = 4
SIZED = 2  # the kind of a field that says its length, on the wire
LARGEST = 1_000_000  # bytes of a message that the server reads
LARGEST_NUMBER = 10  # bytes of it on the wire


@dataclass(frozen=True)
class Sent:
    """The bytes of a call of `method`, and of which kind they are."""

    method: str
    kind: str
    content: bytes


@st.composite
def calls(draw: Callable[..., Any], kinds: Sequence[str] = KINDS) -> Sent:
    """Of any of the kinds."""
    method, kind = draw(st.sampled_from(sorted(METHODS))), draw(st.sampled_from(kinds))
    if kind == "random":
        return Sent(method, kind, draw(st.binary(max_size=300)))
    if kind == "too large":
        return Sent(method, kind, bytes([0x0A]) + _varint(2 * LARGEST) + b"u" * (2 * LARGEST))
    if kind in ("flooded", "nested"):
        user = b"\x0a\x03u01" if method in OF_A_USER else b""
        return Sent(method, kind, user + draw(_floods(METHODS[method].DESCRIPTOR, kind == "nested")))
    content = draw(messages(METHODS[method])).SerializeToString()[:LARGEST]
    return Sent(method, kind, draw(_spoilt(content))[:LARGEST] if kind == "spoilt" else content)


@st.composite
def _floods(draw: Callable[..., Any], message: Descriptor, is_nested: bool) -> bytes:
    """Of a field at the top, or of one within a message there."""
    around: list[int] = []
    inner = [field for field in message.fields if field.message_type is not None]
    while inner and is_nested and len(around) <= DEEPEST and (not around or draw(st.booleans())):
        field = draw(st.sampled_from(inner))
        around.append(field.number)
        message = field.message_type
        inner = [field for field in message.fields if field.message_type is not None]
    number = draw(st.sampled_from([field.number for field in message.fields] or [UNKNOWN]))
    element = draw(st.sampled_from((b"\x00", b"\x02\x0a\x00", b"\x02\x12\x00", b"\x01a", b"\x03\x0a\x01a")))
    part = _varint(number << 3 | SIZED) + element
    found = part * ((LARGEST - 100) // len(part))
    for place in reversed(around):
        found = _varint(place << 3 | SIZED) + _varint(len(found)) + found
    return found


@st.composite
def messages(draw: Callable[..., Any], made: type[Message]) -> Message:
    """Of one type, and mostly with what its method needs."""
    message = made()
    _fill(draw, message, 0)
    if draw(st.integers(0, 9)):
        _name(message, draw(st.sampled_from(KNOWN)))
    return message


def _name(message: Any, known: str) -> None:
    """The user, or every item or event of a batch."""
    names = message.DESCRIPTOR.fields_by_name
    if "user_id" in names:
        message.user_id = known
    for one in message.items if "items" in names else ():
        change = one.change if "change" in one.DESCRIPTOR.fields_by_name else one
        change.item_id, change.version = known, 1
    for place, one in enumerate(message.events if "events" in names else ()):
        one.event_id, one.user_id, one.item_id, one.position, one.bid = f"{known} {place}", known, known, 1, 0.5
        one.request_id = one.request_id or known


def _fill(draw: Callable[..., Any], message: Message, depth: int) -> None:
    fields = message.DESCRIPTOR.fields
    chosen = draw(st.lists(st.integers(0, len(fields) - 1), max_size=4, unique=True)) if fields else []
    for place in chosen:
        field = fields[place]
        if _is_map(field):
            _fill_map(draw, message, field, depth)
        elif field.is_repeated:
            _fill_list(draw, getattr(message, field.name), field, depth)
        elif field.type != FieldDescriptor.TYPE_MESSAGE:
            setattr(message, field.name, draw(_scalar(field)))
        elif depth < DEEPEST:
            getattr(message, field.name).SetInParent()
            _fill(draw, getattr(message, field.name), depth + 1)


def _is_map(field: FieldDescriptor) -> bool:
    kind: Descriptor | None = field.message_type
    return kind is not None and kind.GetOptions().map_entry


def _fill_map(draw: Callable[..., Any], message: Message, field: FieldDescriptor, depth: int) -> None:
    entries, count = getattr(message, field.name), draw(st.sampled_from(COUNTS))
    name = draw(_text())
    for number in range(_fitting(count, len(name))):
        entry = entries[f"{name}{number}" if number else name]
        if number == 0 and depth < DEEPEST:
            _fill(draw, entry, depth + 1)


def _fill_list(draw: Callable[..., Any], values: Any, field: FieldDescriptor, depth: int) -> None:
    count = draw(st.sampled_from(COUNTS))
    if field.type != FieldDescriptor.TYPE_MESSAGE:
        few = [draw(_scalar(field)) for _ in range(min(count, 2))]
        longest = max((len(one) if isinstance(one, str | bytes) else LARGEST_NUMBER for one in few), default=1)
        values.extend([few[number % len(few)] for number in range(_fitting(count, longest))])
        return
    for _ in range(min(count, 2) if depth < DEEPEST else 0):
        _fill(draw, values.add(), depth + 1)
    few = list(values)
    largest = max((one.ByteSize() for one in few), default=1)
    values.extend([few[number % 2] for number in range(2, _fitting(count, largest))] if len(few) == 2 else [])


def _fitting(count: int, size: int) -> int:
    """At most so many of one size."""
    return min(count, max(2, LARGEST // max(size, 1)))


def _scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    return _text() if field.type == FieldDescriptor.TYPE_STRING else st.sampled_from(NUMBERS[field.type])


def _text() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(KNOWN), st.sampled_from(ODD))


@st.composite
def _spoilt(draw: Callable[..., Any], content: bytes) -> bytes:
    place = draw(st.integers(0, len(content)))
    how = draw(st.sampled_from(("flip", "cut", "double", "insert")))
    if how == "flip" and place < len(content):
        return content[:place] + bytes([content[place] ^ draw(st.integers(1, 255))]) + content[place + 1 :]
    if how == "cut":
        return content[:place]
    middle = content[place:] if how == "double" else draw(st.binary(max_size=20))
    return content[:place] + middle + content[place:]


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
