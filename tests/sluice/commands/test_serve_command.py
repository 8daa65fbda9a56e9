from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from sluice.commands.serve_command import near, parse_doors, side_door

PEM = Path("some.pem")


@pytest.mark.parametrize(("certificate", "key", "authority"), [(PEM, None, None), (None, PEM, None), (None, None, PEM)])
def test_half_a_door_is_refused(certificate, key, authority):
    with pytest.raises(ConfigError, match="give both, or none"):
        parse_doors(certificate, key, authority, None, None)


def test_doors_are_open_or_whole():
    assert parse_doors(None, None, None, None, None).tls is None
    tls = parse_doors(PEM, PEM, PEM, None, None).tls
    assert tls is not None
    assert (tls.certificate, tls.key, tls.client_ca) == (PEM, PEM, PEM)


@pytest.mark.parametrize(("host", "target"), [
    ("0.0.0.0", "127.0.0.1:7"), ("::", "[::1]:7"), ("127.0.0.1", "127.0.0.1:7"), ("10.0.0.5", "10.0.0.5:7"),
])
def test_a_server_on_every_interface_is_near_on_loopback(host, target):
    assert near(host, 7) == target


@pytest.mark.parametrize(("host", "loud"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_side_port_for_others_is_said_loudly(host, loud, caplog):
    with side_door(host, 0):
        assert ("THE SIDE PORT LISTENS" in caplog.text) == loud
