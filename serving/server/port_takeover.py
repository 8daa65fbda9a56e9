"""A port that a process takes over from its predecessor without a refused or reset connection. Linux only.

Both listen on it at once (SO_REUSEPORT). The kernel would spread new connections over the two, and a connection that
still waits in the queue of a listener when that closes is reset. So a classic BPF program of one instruction picks the
listener: "number 1", which is the newer of two, and where there is but one, the kernel takes that. From the moment the
successor listens all new connections are its own, and the predecessor empties its queue in peace.

Holds for two listeners: a third may come only when the first has gone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contracts.errors import SluiceError

DRAIN = signal.SIGUSR1  # to a process whose successor listens: let the callers go over, then end
DRAIN_GRACE_SECONDS = 30.0  # longest that requests under way may keep a connection beyond its age
SO_ATTACH_REUSEPORT_CBPF = 51
RETURN_CONSTANT = 0x06  # BPF_RET | BPF_K
OPEN_FILES = Path("/proc/self/fd")


@contextmanager
def reserved(host: str, port: int) -> Iterator[int]:
    """Keeps a port for this process and its children, without listening; port 0 picks a free one. Yields the port.

    Raises SluiceError when somebody listens on it already, or this is no Linux.
    """
    if not OPEN_FILES.exists():
        raise SluiceError("a port can be handed over on Linux alone; serve the bundle's folder instead")
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


def prefer_newest(port: int) -> None:
    """Makes the newer one of two processes that listen on the port get every new connection."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", RETURN_CONSTANT, 0, 0, 1))
    filter_ = struct.pack("HL", 1, ctypes.addressof(program))
    for listener in _own_sockets(port, listening=True):
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, filter_)


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
