"""Who gets a new connection when two listen on one port, and what becomes of those that nobody has accepted yet."""

from __future__ import annotations

import platform
import socket
from pathlib import Path
from select import select as readable

import pytest

from contracts.errors import SluiceError
from serving.server import port_takeover
from serving.server.port_takeover import connections, reserved, select

CALLERS = 40
CAP_SYS_ADMIN, CAP_BPF = 21, 39


def listener(port: int, host: str = "127.0.0.1") -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if ":" in host:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host == "::1")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind((host, port))
    found.listen(CALLERS)
    found.setblocking(False)
    return found


def call(port: int, host: str = "127.0.0.1") -> list[socket.socket]:
    return [socket.create_connection((host, port), timeout=5) for _ in range(CALLERS)]


def accepted(one: socket.socket) -> list[socket.socket]:
    taken = []
    while readable([one], [], [], 0.05)[0]:
        taken.append(one.accept()[0])
    return taken


def close(sockets) -> None:
    for one in sockets:
        one.close()


def test_the_newer_of_two_listeners_gets_every_connection_and_the_elders_queue_is_not_lost():
    with reserved("127.0.0.1", 0) as port:
        elder = listener(port)
        select(port, [1])  # beyond the last: the one there is
        for _ in range(3):  # a chain of successors
            early = call(port)
            successor = listener(port)
            late = call(port)
            got_late, got_early = accepted(successor), accepted(elder)
            assert (len(got_early), len(got_late)) == (CALLERS, CALLERS)
            assert connections(port) == 2 * CALLERS
            close([*early, *late, *got_early, *got_late, elder])
            elder = successor
        elder.close()


@pytest.mark.parametrize("numbers", [(0, 1, 2), (2, 1), (0, 2), (0,), (2,)])
def test_the_selected_listeners_share_the_connections_and_no_other_gets_any(numbers):
    with reserved("127.0.0.1", 0) as port:
        listeners = [listener(port) for _ in range(3)]
        select(port, numbers)
        callers = call(port)
        got = [accepted(one) for one in listeners]
        assert [bool(one) for one in got] == [place in numbers for place in range(3)]
        assert sum(map(len, got)) == CALLERS
        close([*callers, *listeners, *(one for taken in got for one in taken)])


def counts_in_kernel() -> bool:
    """May this process deal connections in turn? Root of the host may, or who has CAP_BPF there, from Linux 5.12 on."""
    of_the_host = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    granted = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    may = bool(int(granted.split()[1], 16) & (1 << CAP_BPF | 1 << CAP_SYS_ADMIN))
    return of_the_host and release >= (5, 12) and may


def dealt(port: int, listeners: list[socket.socket]) -> list[int]:
    """How many of CALLERS that come at once each listener gets."""
    callers = call(port)
    got = [accepted(one) for one in listeners]
    close([*callers, *(one for taken in got for one in taken)])
    return [len(one) for one in got]


@pytest.mark.skipif(not counts_in_kernel(), reason="takes root or CAP_BPF, and Linux 5.12")
@pytest.mark.parametrize(("numbers", "first", "expected"), [
    ((0, 1), (), [20, 20]), ((0, 2), (), [20, 0, 20]), ((0, 1), (1, 1, 1, 1), [18, 22]),
    ((0, 1, 2, 3), (2, 2, 3, 2), [9, 9, 12, 10])])
def test_connections_are_dealt_in_turn_after_those_that_make_up_for_fewer(numbers, first, expected):
    with reserved("127.0.0.1", 0) as port:
        listeners = [listener(port) for _ in expected]
        select(port, numbers, first)
        assert dealt(port, listeners) == expected
        close(listeners)


def test_where_they_cannot_be_counted_ports_choose_among_those_with_far_fewer(monkeypatch):
    monkeypatch.setattr(port_takeover, "SYSTEM_CALL", {})
    with reserved("127.0.0.1", 0) as port:
        listeners = [listener(port) for _ in range(3)]
        for first, getting in (((), 3), ((1, 2), 3), ((1, 1, 2), 1), ((1, 2, 1, 2), 2)):
            select(port, (0, 1, 2), first)
            got = dealt(port, listeners)
            assert sum(got) == CALLERS
            assert sum(map(bool, got)) == getting
        close(listeners)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(("where", "caller"), [("::1", "::1"), ("::ffff:127.0.0.1", "127.0.0.1")])
def test_a_port_of_the_newer_protocol_is_shared_alike(where, caller):
    """gRPC listens on the newer one for callers of either."""
    with reserved(caller, 0) as port:
        listeners = [listener(port, where) for _ in range(3)]
        select(port, [0, 2])
        callers = call(port, caller)
        got = [accepted(one) for one in listeners]
        assert [bool(one) for one in got] == [True, False, True]
        close([*callers, *listeners, *(one for taken in got for one in taken)])


def test_with_nobody_selected_the_kernel_spreads_over_all():
    with reserved("127.0.0.1", 0) as port:
        listeners = [listener(port) for _ in range(2)]
        select(port, [1])
        select(port, [])
        callers = call(port)
        got = [accepted(one) for one in listeners]
        assert all(got)
        close([*callers, *listeners, *(one for taken in got for one in taken)])


def test_when_one_closes_the_last_takes_its_number():
    """What the order in which a supervisor ends old workers rests on."""
    with reserved("127.0.0.1", 0) as port:
        first, second, third = (listener(port) for _ in range(3))
        first.close()
        select(port, [0])
        callers = call(port)
        got = accepted(third)
        assert (len(got), len(accepted(second))) == (CALLERS, 0)
        close([*callers, *got, second, third])


def test_where_the_host_is_not_this_machines_another_one_is_asked_for():
    with pytest.raises(SluiceError, match="give --host an address of this machine"), reserved("192.0.2.1", 0):
        pass


def test_a_port_somebody_listens_on_cannot_be_reserved():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SluiceError, match=f"port {port} on 127.0.0.1 cannot be had .*; perhaps it is taken"), (
                reserved("127.0.0.1", port)):
            pass


def test_a_reserved_port_refuses_callers_until_somebody_listens():
    with reserved("127.0.0.1", 0) as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
