"""JSON as people write it, to the messages of serving/proto/sluice.proto and back; the proto is the only schema.

    {"context": {"device": "phone"}}     for  {"context": {"device": {"text": "phone"}}}
    {"candidate_list": ["i_1", "i_2"]}   for  {"candidate_list": {"item_ids": ["i_1", "i_2"]}}

Both forms are taken, names in the proto's form or in lowerCamelCase. A `Value` is given as what it holds, a message
with one repeated field as a list, a time as in 2026-03-01T08:00:00Z. What is wrong with the values is the server's to
say: nothing is checked twice.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from contracts.errors import RequestError
from contracts.shown import short

Json = Any  # what json.loads returns
Made = TypeVar("Made", bound=Message)
VALUE, TIMESTAMP = "sluice.v1.Value", "google.protobuf.Timestamp"
WHOLE = {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
REAL = {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}
KINDS = {bool: "flag", int: "integer", float: "number", str: "text"}


def to_message(given: Json, empty: Made) -> Made:
    """Fills and returns `empty`. Raises RequestError for what is no such message."""
    if not isinstance(given, dict) and (listed_field(empty.DESCRIPTOR) is None or not isinstance(given, list)):
        raise RequestError("body", f"is {_kind(given)}; send one JSON object, the message {empty.DESCRIPTOR.name}")
    try:
        return json_format.ParseDict(_plain(given, empty.DESCRIPTOR), empty)
    except (json_format.ParseError, RecursionError) as error:
        raise RequestError("body", f"is no {empty.DESCRIPTOR.name}: {short(_where(str(error)))}") from None
    except OverflowError:  # protobuf's, of a whole number where a float is wanted
        raise RequestError("body", f"is no {empty.DESCRIPTOR.name}: a whole number in it is beyond what a number may "
                                   f"be, {sys.float_info.max:.2g}; send a smaller one") from None
    except SystemError:  # protobuf's, of a name with half a surrogate pair
        raise RequestError("body", f"is no {empty.DESCRIPTOR.name}: a name in it is no Unicode text") from None


def _where(told: str) -> str:
    """protobuf's sentence with the field as a path: the first 80 characters are then of what is wrong."""
    path = re.match(r"(?:Failed to parse \w+ field: )*", told)
    names = re.findall(r"parse (\w+) field", path[0]) if path else []
    return f"{'.'.join(names)}: {told[path.end():]}" if path and names else told


def to_json(message: Message) -> Json:
    """Names as in the proto, all of them, but for `optional` ones that are not set. Numbers are numbers, where protobuf
    writes those of 64 bits as text; one that is none (a score that could not be made) is null."""
    made = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    return _numbered(made, message.DESCRIPTOR)


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


def _numbered(made: Json, message: Descriptor) -> Json:
    if message.full_name == TIMESTAMP:
        return made
    known = message.fields_by_name
    return {name: _of_field(held, known[name]) for name, held in made.items()}


def _of_field(made: Json, field: FieldDescriptor) -> Json:
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {name: _of_field(held, inner) for name, held in made.items()}
    if isinstance(made, list):
        return [_of_one(held, field) for held in made]
    return _of_one(made, field)


def _of_one(made: Json, field: FieldDescriptor) -> Json:
    if field.message_type is not None:
        return _numbered(made, field.message_type)
    if isinstance(made, str) and field.cpp_type in WHOLE:
        return int(made)
    return None if isinstance(made, str) and field.cpp_type in REAL else made


def _kind(given: Json) -> str:
    return {list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(type(given), "a number")
