"""How much a message holds, told from its bytes: what is too much is never unpacked.

An empty entry of a list takes two bytes of a message, and up to a hundred of memory.
"""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

SIZED, GROUPS, FIXED = 2, (3, 4), {1: 8, 5: 4}  # kinds of fields on the wire; bytes of those of a fixed size
DEEPEST = 100  # levels, beyond which protobuf parses nothing


def fields_of(sent: bytes, most: int) -> int:
    """Fields at the top of a message, counted up to most + 1. Of what is no message those before the damage."""
    place = count = 0
    while place < len(sent) and count <= most:
        tag, place = _number(sent, place)
        count += 1
        kind = tag & 7
        if kind in (0, SIZED):
            number, place = _number(sent, place)
            place += number if kind == SIZED else 0
        elif kind in FIXED:
            place += FIXED[kind]
        elif kind not in GROUPS:  # the fields of a group count with the others
            return count
    return count


def parts_of(sent: bytes, message: Descriptor, most: int) -> int:
    """Messages and listed texts within a message of this type, however deep; more than `most` where there are. Raises
    DecodeError for what is no such message.

    Messages one behind another are one message with the fields of all, so that each level is read as a whole.
    """
    count, levels = 0, [(message, sent, 0)]
    while levels:
        within, content, depth = levels.pop()
        for field, parts in _outline(within).FromString(content).ListFields():
            count += len(parts)
            if count > most:
                return count
            inner = within.fields_by_number[field.number].message_type
            if inner is not None and depth < DEEPEST:
                levels.append((inner, b"".join(parts), depth + 1))
    return count


@cache
def _outline(message: Descriptor) -> type[Message]:
    """The same message, of which nothing is unpacked: its messages and listed texts are lists of bytes."""
    parts = [field.number for field in message.fields if field.message_type is not None
             or (field.is_repeated and field.type == FieldDescriptor.TYPE_STRING)]
    name = message.full_name.replace(".", "_")
    file = FileDescriptorProto(name=f"{name}.proto", message_type=[DescriptorProto(name=name, field=[
        FieldDescriptorProto(name=f"part_{number}", number=number, type=FieldDescriptorProto.TYPE_BYTES,
                             label=FieldDescriptorProto.LABEL_REPEATED) for number in parts])])
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


def _number(sent: bytes, place: int) -> tuple[int, int]:
    """The variable-length number there, and where the next begins."""
    byte = sent[place] if place < len(sent) else 0
    if byte < 128:
        return byte, place + 1
    number = 0
    for shift, byte in enumerate(sent[place:place + 10]):
        number |= (byte & 127) << 7 * shift
        if byte < 128:
            return number, place + shift + 1
    return number, place + 10
