"""How much a message holds, told from its bytes: what is too much is never unpacked.

An empty entry of a list takes two bytes of a message, and up to a hundred of memory.
"""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor

SIZED, GROUPS, FIXED = 2, (3, 4), {1: 8, 5: 4}  # kinds of fields on the wire; bytes of those of a fixed size


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
    """Messages and listed texts within a message of this type, however deep, counted up to most + 1. Of what is no
    message those before the damage."""
    place, end, known, count = 0, len(sent), _parts(message), 0
    around: list[tuple[int, dict[int, Descriptor | None]]] = []
    while count <= most:
        if place >= end:
            if not around:
                return count
            end, known = around.pop()
            continue
        tag, place = _number(sent, place)
        kind = tag & 7
        if kind == SIZED:
            size, place = _number(sent, place)
            if tag not in known:
                place += size
                continue
            count += 1
            inner = known[tag]
            if inner is None:
                place += size
            else:
                around.append((end, known))
                end, known = min(place + size, end), _parts(inner)
        elif kind == 0:
            _, place = _number(sent, place)
        elif kind in FIXED:
            place += FIXED[kind]
        elif kind not in GROUPS:
            return count
    return count


@cache
def _parts(message: Descriptor) -> dict[int, Descriptor | None]:
    """By their tags the fields that hold messages, with the type of these, and the lists of texts, with None."""
    return {field.number << 3 | SIZED: field.message_type for field in message.fields
            if field.message_type is not None or (field.is_repeated and field.type == FieldDescriptor.TYPE_STRING)}


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
