"""A reply that cannot be put together costs its sender, not the server.

A SuperLink hands on a reply in parts whose heads it has checked, and Flower's grid puts them together in the ServerApp:
parts of another kind than their place asks for, or whose bodies do not decode, raise there, and with the exception go
all replies that came in the same call. Flower 1.41 has no hook for it, so one name of its module is replaced;
`tests/federated/flower/test_reply_guard.py` says which.
"""

from __future__ import annotations

import logging

from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.error_pb2 import Error as ProtoError
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.message_pb2 import Metadata as ProtoMetadata
from flwr.supercore.constant import SYSTEM_MESSAGE_TYPE
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.superlink.grid import http_grid

LOG = logging.getLogger(__name__)


def guard() -> None:
    """Replies that Flower's grid puts together in this process go through `put_together` from now on."""
    vars(http_grid)[inflate_object_from_contents.__name__] = put_together


def put_together(object_id: str, contents: dict[str, bytes]) -> Message:
    """The message of this id, every part of which is what its place asks for; an error in its place otherwise."""
    try:
        inflated = inflate_object_from_contents(object_id, contents)
        if not isinstance(inflated, Message):
            raise TypeError(f"it is a {type(inflated).__name__}, not a message")
        return message_from_proto(ProtoMessage.FromString(message_to_proto(inflated).SerializeToString()))
    except Exception as error:  # whatever a client can make Flower raise
        LOG.warning("a reply cannot be put together: %s: %s", type(error).__name__, error)
        return _unreadable()


def _unreadable() -> Message:
    return message_from_proto(ProtoMessage(
        metadata=ProtoMetadata(message_type=SYSTEM_MESSAGE_TYPE), error=ProtoError(code=ErrorCode.MESSAGE_UNAVAILABLE)))
