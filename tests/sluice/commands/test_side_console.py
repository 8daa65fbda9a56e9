"""The side port of a server: what is said of it, and whom its console asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from serving.access.doors import NO_DOORS, Doors
from serving.access.tls import TlsFiles
from sluice.commands.side_console import SidePort, compared, near, records_command, side_door, targets

LOCAL, OTHERS, OWN, OTHER = "127.0.0.1", "0.0.0.0", "127.0.0.1:7", "127.0.0.1:8"
TOKENS = Doors(access=Path("access.toml"))
TLS = Doors(tls=TlsFiles(certificate=Path("a.pem"), key=Path("a.key")))


@pytest.mark.parametrize(("host", "doors", "own"), [
    (LOCAL, NO_DOORS, OWN), (LOCAL, TOKENS, OWN), (OTHERS, TOKENS, OWN), (OTHERS, NO_DOORS, ""), (LOCAL, TLS, "")])
def test_the_console_asks_its_server_in_plain_text_and_for_others_only_behind_tokens(host, doors, own):
    assert targets(host, doors, OWN, "").own == own


@pytest.mark.parametrize("doors", [NO_DOORS, TOKENS])
def test_a_compared_folders_server_asks_for_no_token_and_is_asked_from_loopback_alone(doors):
    assert targets(LOCAL, doors, OWN, OTHER).other == OTHER
    assert targets(OTHERS, doors, OWN, OTHER).other == ""


@pytest.mark.parametrize("told", [{"records": Path("out")}, {"compare": "10.0.0.5:7"}])
def test_what_only_the_console_would_show_needs_one(told):
    with pytest.raises(ConfigError, match="give it too, or leave them out"):
        SidePort(**told)
    assert SidePort(port=0, **told).port == 0


@pytest.mark.parametrize(("host", "target"), [
    ("0.0.0.0", "127.0.0.1:7"), ("::", "[::1]:7"), ("127.0.0.1", "127.0.0.1:7"), ("10.0.0.5", "10.0.0.5:7"),
])
def test_a_server_on_every_interface_is_near_on_loopback(host, target):
    assert near(host, 7) == target


@pytest.mark.parametrize(("host", "loud"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_side_port_for_others_is_said_loudly(host, loud, caplog):
    with side_door(host, 0):
        assert ("THE SIDE PORT LISTENS" in caplog.text) == loud


@pytest.mark.parametrize(("target", "loud"), [("10.0.0.5:7", True), ("127.0.0.1:7", False), (None, False)])
def test_another_machine_that_the_console_asks_is_said_loudly(target, loud, caplog):
    with compared(target) as other:
        assert other == (target or "")
    assert ("THE CONSOLE ASKS 10.0.0.5:7 IN PLAIN TEXT" in caplog.text) == loud


@pytest.mark.parametrize("target", ["out/no such bundle", "10.0.0.5", ":7", "10.0.0.5:grpc", "10.0.0.5:99999"])
def test_what_is_neither_a_folder_nor_an_address_is_not_compared_with(target):
    with pytest.raises(ConfigError, match=f"--compare {target!r} is neither there"), compared(target):
        pass


def test_the_registry_of_the_environment_is_no_word_of_a_command(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://user:secret@host/name")
    assert not any("secret" in word for word in records_command(Path("out"), None))
    assert records_command(Path("out"), "sqlite:///x.db")[-2:] == ("--registry", "sqlite:///x.db")
