"""Our messages inside Flower's: named arrays <-> an ArrayRecord, and how many bytes a message takes on the wire."""

from __future__ import annotations

from collections.abc import Mapping

from flwr.app import Array, ArrayRecord, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.common.serde import message_to_proto

from contracts.errors import ProtocolError
from federated.protocol.messages import Message

ARRAYS = "arrays"


def to_records(message: Mapping[str, object]) -> RecordDict:
    arrays = {name: Array(value) for name, value in message.items()}  # type: ignore[call-overload]
    return RecordDict({ARRAYS: ArrayRecord(arrays)})  # type: ignore[dict-item]


def from_records(records: RecordDict, name: str = ARRAYS) -> Message:
    """Raises ProtocolError when there are no arrays or one does not decode."""
    if name not in records.array_records:
        raise ProtocolError(f"a message has no record {name!r}; it has {sorted(records)}")
    try:
        return {key: array.numpy() for key, array in records.array_records[name].items()}
    except (ValueError, TypeError, EOFError) as error:
        raise ProtocolError(f"an array of a message does not decode: {error}") from None


def wire_bytes(message: FlowerMessage) -> int:
    """Of the whole message as gRPC carries it: payload, array headers, metadata."""
    return message_to_proto(message).ByteSize()
