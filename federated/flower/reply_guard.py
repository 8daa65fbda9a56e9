"""A reply that cannot be put together costs its sender, not the server.

A SuperLink hands on a reply in parts whose heads it has checked, and Flower's grid puts them together in the ServerApp:
parts of another kind than their place asks for, or whose bodies do not decode, raise there, and with the exception go
all replies that came in the same call; parts that are announced and do not come are waited for, for two hours. Flower
1.41 has no hook for either, so two names of its module are replaced; `tests/federated/flower/test_reply_guard.py` says
which.
"""

from __future__ import annotations

import json
import logging
from functools import partial

from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.error_pb2 import Error as ProtoError
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.message_pb2 import Metadata as ProtoMetadata
from flwr.supercore.constant import SYSTEM_MESSAGE_TYPE
from flwr.supercore.inflatable.inflatable_object import get_object_head_values_from_object_content
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, pull_objects
from flwr.superlink.grid import http_grid

LOG = logging.getLogger(__name__)
PULL_SECONDS = 30.0  # within which the parts of a reply come after its head, or their sender is absent
REPEATED = 1 << 28  # bytes to which equal parts, which are sent once, may add up


def guard() -> None:
    """Replies that Flower's grid puts together in this process go through `put_together` from now on, and their parts
    come within PULL_SECONDS."""
    vars(http_grid)[inflate_object_from_contents.__name__] = put_together
    vars(http_grid)[pull_objects.__name__] = partial(pull_objects, max_time=PULL_SECONDS)


def put_together(object_id: str, contents: dict[str, bytes]) -> Message:
    """The message of this id, every part of which is what its place asks for; an error in its place otherwise."""
    try:
        _require_measure(contents)
        inflated = inflate_object_from_contents(object_id, contents)
        if not isinstance(inflated, Message):
            raise TypeError(f"it is a {type(inflated).__name__}, not a message")
        return message_from_proto(ProtoMessage.FromString(message_to_proto(inflated).SerializeToString()))
    except Exception as error:  # whatever a client can make Flower raise
        LOG.warning("a reply cannot be put together: %s: %s", type(error).__name__, error)
        return _unreadable()


def _require_measure(contents: dict[str, bytes]) -> None:
    """Parts that are named many times are larger put together than they were sent. Raises ValueError."""
    most = max(REPEATED, 2 * sum(map(len, contents.values())))
    for content in contents.values():
        kind, children, _ = get_object_head_values_from_object_content(content)
        body = content.partition(b"\x00")[2]
        if kind in ("RecordDict", "ArrayRecord") and len(json.loads(body)) > 1:
            raise ValueError(f"{kind} of more than one part")
        if kind == "Array":
            sizes = [len(contents[child]) for child in children]
            if (size := sum(sizes[place] for place in json.loads(body)["arraychunk_ids"])) > most:
                raise ValueError(f"an array of {size} bytes put together, {most} are the most")


def _unreadable() -> Message:
    return message_from_proto(ProtoMessage(
        metadata=ProtoMetadata(message_type=SYSTEM_MESSAGE_TYPE), error=ProtoError(code=ErrorCode.MESSAGE_UNAVAILABLE)))
