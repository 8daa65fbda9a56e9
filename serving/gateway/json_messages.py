"""JSON as people write it, to the messages of serving/proto/sluice.proto and back; the proto is the only schema.

    {"context": {"device": "phone"}}     for  {"context": {"device": {"text": "phone"}}}
    {"candidate_list": ["i_1", "i_2"]}   for  {"candidate_list": {"item_ids": ["i_1", "i_2"]}}

Both forms are taken, names in the proto's form or in lowerCamelCase. A `Value` is given as what it holds, and a message
with one repeated field as a list. What is wrong with the values is the server's to say: nothing is checked twice.
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from contracts.errors import RequestError
from contracts.shown import short

Json = Any  # what json.loads returns
Made = TypeVar("Made", bound=Message)
VALUE = "sluice.v1.Value"
KINDS = {bool: "flag", int: "integer", float: "number", str: "text"}


def to_message(given: Json, empty: Made) -> Made:
    """Fills and returns `empty`. Raises RequestError for what is no such message."""
    if not isinstance(given, dict):
        raise RequestError("body", f"is {_kind(given)}; send one JSON object, the message {empty.DESCRIPTOR.name}")
    try:
        return json_format.ParseDict(_plain(given, empty.DESCRIPTOR), empty)
    except (json_format.ParseError, RecursionError) as error:
        raise RequestError("body", f"is no {empty.DESCRIPTOR.name}: {short(str(error), 300)}") from None


def to_json(message: Message) -> Json:
    """Names as in the proto; a number that is none (a score that could not be made) is null."""
    return _without_nan(json_format.MessageToDict(message, preserving_proto_field_name=True))


def fields_of(message: Descriptor) -> dict[str, FieldDescriptor]:
    """By the proto's name and by the lowerCamelCase one."""
    return {name: field for field in message.fields for name in (field.name, field.json_name)}


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def listed_field(message: Descriptor) -> FieldDescriptor | None:
    """The one field of a message that is given as a list; None where it has others, or is a oneof."""
    only = message.fields[0] if len(message.fields) == 1 else None
    return only if only is not None and only.is_repeated and not is_map(only) else None


def _plain(given: Json, message: Descriptor) -> Json:
    """In the form that json_format takes."""
    if message.full_name == VALUE and not isinstance(given, dict):
        return _value(given)
    listed = listed_field(message)
    if listed is not None and isinstance(given, list):
        given = {listed.name: given}
    if not isinstance(given, dict):
        return given
    known = fields_of(message)
    return {name: _field(one, known[name]) if name in known else one for name, one in given.items()}


def _field(given: Json, field: FieldDescriptor) -> Json:
    if field.message_type is None:
        return given
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {name: _field(one, inner) for name, one in given.items()} if isinstance(given, dict) else given
    if field.is_repeated and isinstance(given, list):
        return [_plain(one, field.message_type) for one in given]
    return _plain(given, field.message_type)


def _value(given: Json) -> Json:
    if isinstance(given, list):
        return {"list": {"values": [_value(one) for one in given]}}
    kind = KINDS.get(type(given))
    return {kind: given} if kind else given


def _without_nan(made: Json) -> Json:
    if isinstance(made, dict):
        return {name: [None if one == "NaN" else one for one in held] if name == "probabilities" else held
                for name, held in made.items()}
    return made


def _kind(given: Json) -> str:
    return {list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(type(given), "a number")
