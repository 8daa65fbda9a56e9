"""Heads of calls and answers on the wire, in HPACK (RFC 7541) by its static table alone: callers set the size of the
dynamic one to 0."""

from __future__ import annotations

import grpc

STATUS_NAMES = (b"grpc-status", bytes.fromhex("9acac8b21234da8f"))  # plain, and in HPACK's Huffman code
CODES = {str(code.value[0]).encode(): code.name for code in grpc.StatusCode}


def head(path: str, authority: str) -> bytes:
    """The fields of every call, in HPACK without its dynamic table."""
    def literal(name: bytes, value: str) -> bytes:
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value.encode()

    return (b"\x83\x86" + b"\x04" + bytes([len(path)]) + path.encode()  # POST, http, :path
            + b"\x01" + bytes([len(authority)]) + authority.encode()
            + literal(b"content-type", "application/grpc") + literal(b"te", "trailers"))


def timeout(seconds: float) -> bytes:
    """gRPC's field for a call's deadline, at least a microsecond."""
    value = f"{max(round(seconds * 1e6), 1)}u".encode() if seconds < 99 else f"{round(seconds)}S".encode()
    return b"\x00\x0cgrpc-timeout" + bytes([len(value)]) + value


def status(block: bytes) -> str | None:
    """The name of gRPC's status in a block of header fields, None where it has none."""
    rest = memoryview(block)
    while rest:
        first = rest[0]
        if first & 0x80:  # name and value from the static table
            _, rest = _integer(rest, 7)
        elif first & 0xE0 == 0x20:  # a new size of the dynamic table
            _, rest = _integer(rest, 5)
        else:
            index, rest = _integer(rest, 6 if first & 0x40 else 4)
            name, rest = (b"", rest) if index else _text(rest)
            value, rest = _text(rest)
            if name in STATUS_NAMES:
                return CODES[value if value in CODES else _digits(value)]
    return None


def _integer(rest: memoryview, bits: int) -> tuple[int, memoryview]:
    largest = (1 << bits) - 1
    value, place = rest[0] & largest, 1
    if value == largest:
        shift = 0
        while True:
            more = rest[place]
            value, place, shift = value + ((more & 0x7F) << shift), place + 1, shift + 7
            if not more & 0x80:
                break
    return value, rest[place:]


def _text(rest: memoryview) -> tuple[bytes, memoryview]:
    """As it stands; one in Huffman's code is not decoded."""
    length, rest = _integer(rest, 7)
    return bytes(rest[:length]), rest[length:]


def _digits(coded: bytes) -> bytes:
    """A status in Huffman's code: 0, 1 and 2 have five bits, the other digits six."""
    bits, found = "".join(f"{byte:08b}" for byte in coded), ""
    while bits and bits.strip("1"):
        width = 5 if bits[:5] in ("00000", "00001", "00010") else 6
        found += str(int(bits[:width], 2) - (0 if width == 5 else 22))
        bits = bits[width:]
    return found.encode()
