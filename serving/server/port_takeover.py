"""A port that several processes share, and hand over to their successors without a refused or reset connection.

All listen on it at once (SO_REUSEPORT); a connection that still waits in the queue of a listener when that closes, is
reset. So a BPF program picks the listener of every new connection among those selected, by their numbers in the order
in which they began to listen:

    first[connections so far]                   while there are such, then
    numbers[connections so far mod count]       where this process may count in the kernel (root, or CAP_BPF)
    numbers[(source port / 2) mod count]        a classic program, elsewhere; Linux gives a host's connections other
                                                ports at random, so that a few are dealt by chance

From the moment the successors are selected all new connections are theirs, and the predecessors empty their queues in
peace. When one closes, the last takes its number; a number beyond the last leaves the choice to the kernel, which
spreads over all. Linux only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from contracts.errors import SluiceError

SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF = 51, 52
LOAD_BYTE, LOAD_HALF, SHIFT_RIGHT, MODULO, JUMP, JUMP_IF_EQUAL, RETURN_CONSTANT = (
    0x30, 0x28, 0x74, 0x94, 0x05, 0x15, 0x06)
KERNELS_CHOICE = 0xFFFFFFFF
NETWORK_HEADER = -0x100000 & 0xFFFFFFFF  # SKF_NET_OFF: where the packet's IP header begins
IPV4, HEADER_BYTES, HEADER_BYTES_IPV6 = 4, 20, 40
OPEN_FILES = Path("/proc/self/fd")
UNEVEN = 2  # connections that a listener has fewer than the busiest, to have all new ones where they cannot be counted
SYSTEM_CALL = {"x86_64": 321, "aarch64": 280}  # bpf(2)
CREATE_MAP, LOAD_PROGRAM, ARRAY, SOCKET_FILTER, ATTRIBUTE_BYTES = 0, 5, 2, 1, 128
STORE_WORD, MOVE, MOVE_REGISTER, ADD, SUBTRACT, MODULO_OF, LOAD_MAP, CALL, JUMP_UNLESS, FETCH_AND_ADD, EXIT = (
    0x62, 0xB7, 0xBF, 0x07, 0x17, 0x97, 0x18, 0x85, 0x55, 0xDB, 0x95)
LOOK_UP, ADD_AND_FETCH, OF_FILE = 1, 1, 1
FRAME = 10  # the register of the stack


@contextmanager
def reserved(host: str, port: int) -> Iterator[int]:
    """Keeps a port for this process and its children, without listening; port 0 picks a free one. Yields the port.

    Raises SluiceError when somebody listens on it already, the host is not this machine's, or this is no Linux.
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
            cure = ("perhaps it is taken by another `sluice serve`; stop it or give --port"
                    if error.errno == errno.EADDRINUSE else "give --host an address of this machine, or another --port")
            raise SluiceError(f"port {port} on {host} cannot be had ({error.strerror}); {cure}") from None
        yield port


def select(port: int, numbers: Sequence[int], first: Sequence[int] = ()) -> None:
    """New connections go to the port's listeners of these numbers in turn, after one for each of `first`; without any
    the kernel chooses. Where they cannot be counted source ports choose, among those that `first` names UNEVEN times
    where there are such."""
    for listener in _own_sockets(port, listening=True):
        if not (numbers and _dealt_in_turn(listener, numbers, first)):
            far_behind = sorted({number for number in first if first.count(number) >= UNEVEN})
            _dealt_by_port(listener, far_behind or numbers)


def _dealt_in_turn(listener: socket.socket, numbers: Sequence[int], first: Sequence[int]) -> bool:
    """False where the system does not let this process count."""
    opened = list[int]()
    try:
        opened.append(_bpf(CREATE_MAP, struct.pack("4I", ARRAY, 4, 8, 1)))
        code = b"".join(struct.pack("<BBhi", *step) for step in _counting_program(opened[0], numbers, first))
        program, license_ = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"Apache-2.0")
        opened.append(_bpf(LOAD_PROGRAM, struct.pack("2I2Q", SOCKET_FILTER, len(code) // 8, ctypes.addressof(program),
                                                     ctypes.addressof(license_))))
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, opened[1])
    except OSError:
        return False
    finally:
        for one in opened:  # the listeners keep the program, and it its map
            os.close(one)
    return True


def _bpf(command: int, attribute: bytes) -> int:
    """The new file. Raises OSError where the system has no such call, or refuses it."""
    number = SYSTEM_CALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of bpf(2) on {platform.machine()} is not known")
    padded = ctypes.create_string_buffer(attribute, ATTRIBUTE_BYTES)
    found: int = ctypes.CDLL(None, use_errno=True).syscall(number, command, padded, ATTRIBUTE_BYTES)
    if found < 0:
        raise OSError(ctypes.get_errno(), "bpf(2) is refused")
    return found


def _counting_program(counter: int, numbers: Sequence[int], first: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Steps of extended BPF; `counter` is the file of a map with one number, how many connections there have been."""
    def step(code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> tuple[int, int, int, int]:
        return code, source << 4 | target, offset, value

    def choices(among: Sequence[int]) -> list[tuple[int, int, int, int]]:
        """That of register 1."""
        return [one for place, number in enumerate(among) for one in
                (step(JUMP_UNLESS, 1, offset=2, value=place), step(MOVE, value=number), step(EXIT))]

    return [step(STORE_WORD, FRAME, offset=-4), step(MOVE_REGISTER, 2, FRAME), step(ADD, 2, value=-4),
            step(LOAD_MAP, 1, OF_FILE, value=counter), step(0), step(CALL, value=LOOK_UP),
            step(JUMP_UNLESS, offset=2), step(MOVE, value=numbers[0]), step(EXIT),
            step(MOVE, 1, value=1), step(FETCH_AND_ADD, 0, 1, value=ADD_AND_FETCH),
            *choices(first), step(SUBTRACT, 1, value=len(first)), step(MODULO_OF, 1, value=len(numbers)),
            *choices(numbers), step(MOVE, value=numbers[0]), step(EXIT)]


def _dealt_by_port(listener: socket.socket, numbers: Sequence[int]) -> None:
    code = b"".join(struct.pack("HBBI", *step) for step in _program(numbers))
    program = ctypes.create_string_buffer(code)
    filter_ = struct.pack("HL", len(code) // 8, ctypes.addressof(program))
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
