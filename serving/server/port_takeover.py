"""A port that several processes share, and hand over to their successors without a refused or reset connection.

All listen on it at once (SO_REUSEPORT); a connection that still waits in the queue of a listener when that closes, is
reset. So a classic BPF program picks the listener of every new connection among those selected, by their numbers in the
order in which they began to listen:

    numbers[(source port / 2) mod count]        Linux gives a host's connections every other port

From the moment the successors are selected all new connections are theirs, and the predecessors empty their queues in
peace. When one closes, the last takes its number; a number beyond the last leaves the choice to the kernel, which
spreads over all. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from contracts.errors import SluiceError

SO_ATTACH_REUSEPORT_CBPF = 51
LOAD_BYTE, LOAD_HALF, SHIFT_RIGHT, MODULO, JUMP, JUMP_IF_EQUAL, RETURN_CONSTANT = (
    0x30, 0x28, 0x74, 0x94, 0x05, 0x15, 0x06)
KERNELS_CHOICE = 0xFFFFFFFF
NETWORK_HEADER = -0x100000 & 0xFFFFFFFF  # SKF_NET_OFF: where the packet's IP header begins
IPV4, HEADER_BYTES, HEADER_BYTES_IPV6 = 4, 20, 40
OPEN_FILES = Path("/proc/self/fd")


@contextmanager
def reserved(host: str, port: int) -> Iterator[int]:
    """Keeps a port for this process and its children, without listening; port 0 picks a free one. Yields the port.

    Raises SluiceError when somebody listens on it already, or this is no Linux.
    """
    if not OPEN_FILES.exists():
        raise SluiceError("a port can be shared and handed over on Linux alone; serve a folder with --workers 1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe, socket.socket(family) as held:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            port = probe.getsockname()[1]
            probe.close()
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind((host, port))
        except OSError as error:
            raise SluiceError(f"port {port} on {host} cannot be had ({error.strerror}), perhaps it is taken by another "
                              "`sluice serve`; stop it or give --port") from None
        yield port


def select(port: int, numbers: Sequence[int]) -> None:
    """New connections go to the port's listeners of these numbers; without any the kernel chooses."""
    code = b"".join(struct.pack("HBBI", *step) for step in _program(numbers))
    program = ctypes.create_string_buffer(code)
    filter_ = struct.pack("HL", len(code) // 8, ctypes.addressof(program))
    for listener in _own_sockets(port, listening=True):
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, filter_)


def _program(numbers: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The packet tells its protocol, not the listener: one of IPv6 takes callers of IPv4 too, as gRPC's do."""
    *others, last = numbers or [KERNELS_CHOICE]
    if not others:
        return [(RETURN_CONSTANT, 0, 0, last)]
    source_port = [(LOAD_BYTE, 0, 0, NETWORK_HEADER), (SHIFT_RIGHT, 0, 0, 4), (JUMP_IF_EQUAL, 0, 2, IPV4),
                   (LOAD_HALF, 0, 0, NETWORK_HEADER + HEADER_BYTES), (JUMP, 0, 0, 1),
                   (LOAD_HALF, 0, 0, NETWORK_HEADER + HEADER_BYTES_IPV6)]
    choices = [((JUMP_IF_EQUAL, 0, 1, place), (RETURN_CONSTANT, 0, 0, number)) for place, number in enumerate(others)]
    return [*source_port, (SHIFT_RIGHT, 0, 0, 1), (MODULO, 0, 0, len(numbers)),
            *(step for choice in choices for step in choice), (RETURN_CONSTANT, 0, 0, last)]


def connections(port: int) -> int:
    """How many callers are connected to this process on the port."""
    return sum(_has_peer(endpoint) for endpoint in _own_sockets(port, listening=False))


def _own_sockets(port: int, listening: bool) -> Iterator[socket.socket]:
    """Duplicates of the process's TCP sockets with this local port, each closed when the next is asked for."""
    for entry in os.listdir(OPEN_FILES):
        try:
            if not os.readlink(OPEN_FILES / entry).startswith("socket:"):
                continue
            endpoint = socket.socket(fileno=os.dup(int(entry)))
        except OSError:  # closed since it was listed, or it cannot be asked
            continue
        with endpoint:
            if _is_of(endpoint, port) and _listens(endpoint) == listening:
                yield endpoint


def _listens(endpoint: socket.socket) -> bool:
    return bool(endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _has_peer(endpoint: socket.socket) -> bool:
    try:
        endpoint.getpeername()
    except OSError:
        return False
    return True


def _is_of(endpoint: socket.socket, port: int) -> bool:
    return (
        endpoint.family in (socket.AF_INET, socket.AF_INET6)
        and endpoint.type == socket.SOCK_STREAM
        and endpoint.getsockname()[1] == port
    )
