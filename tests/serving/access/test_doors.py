from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from serving.access.doors import Doors, address, check_host, is_loopback, warnings
from serving.access.tls import TlsFiles

TLS = TlsFiles(certificate=Path("c"), key=Path("k"))
UNKNOWN = "(not known|name resolution)"  # without a network
MUTUAL = TLS.model_copy(update={"client_ca": Path("a")})


@pytest.mark.parametrize(("host", "loopback"), [
    ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False),
    ("::", False), ("10.0.0.1", False), ("example.com", False), ("localhost.example.com", False), ("", False)])
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost", "127.8.8.8"])
def test_of_this_machine_are_loopback_and_all_addresses(host: str) -> None:
    check_host(host, "--host")


@pytest.mark.parametrize(("host", "why"), [
    ("", "it is empty"), ("192.0.2.1", "Cannot assign"), ("127.0.0.1:80", UNKNOWN), ("a b", UNKNOWN),
    (f"{'a' * 70}.example", "no name of a host")])
def test_where_nobody_of_this_machine_can_listen_is_refused(host: str, why: str) -> None:
    """192.0.2.0/24 is nobody's (RFC 5737)."""
    with pytest.raises(ConfigError, match=rf"--metrics-host '{host}' is no address of this machine \(.*{why}"):
        check_host(host, "--metrics-host")


def test_addresses_of_both_families() -> None:
    assert address("::1", 5) == address("[::1]", 5) == "[::1]:5"
    assert address("127.0.0.1", 5) == "127.0.0.1:5"


def test_reflection_is_for_loopback_unless_said_otherwise() -> None:
    assert Doors().reflects("::1")
    assert not Doors().reflects("0.0.0.0")
    assert Doors(reflection=True).reflects("0.0.0.0")
    assert not Doors(reflection=False).reflects("127.0.0.1")


@pytest.mark.parametrize(("host", "doors", "said"), [
    ("127.0.0.1", Doors(), []), ("0.0.0.0", Doors(), ["WITHOUT TLS", "FOR EVERYBODY"]),
    ("0.0.0.0", Doors(tls=TLS), ["FOR EVERYBODY"]), ("0.0.0.0", Doors(access=Path("f")), ["WITHOUT TLS"]),
    ("0.0.0.0", Doors(tls=MUTUAL), []), ("0.0.0.0", Doors(tls=TLS, access=Path("f")), [])])
def test_what_stands_open_is_said_aloud(host: str, doors: Doors, said: list[str]) -> None:
    found = warnings(host, doors)
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


def test_doors_go_to_workers_as_json() -> None:
    doors = Doors(tls=MUTUAL, access=Path("f"), reflection=False)
    assert Doors.model_validate_json(doors.model_dump_json()) == doors
