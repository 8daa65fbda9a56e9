from __future__ import annotations

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contracts.errors import ConfigError
from serving.access.doors import Doors, warnings
from sluice.cli import app
from sluice.commands.serve_command import compared, near, open_doors, parse_doors, records_command, side_door

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


@pytest.mark.parametrize(("host", "lines"), [("0.0.0.0", 2), ("127.0.0.1", 0)])
def test_what_stands_open_is_said_loudly(host, lines, caplog):
    open_doors(host, Doors())
    said = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert said == [(logging.WARNING, line) for line in warnings(host, Doors())]
    assert len(said) == lines


def test_the_command_says_what_stands_open_before_it_serves(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "sluice")  # which the command sets; set back after the test
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    asked = ["serve", str(tmp_path / "none"), "--host", "0.0.0.0", "--port", "0", "--workers", "1"]
    assert CliRunner().invoke(app, asked).exit_code != 0  # there is no such bundle
    assert "LISTENING ON 0.0.0.0 WITHOUT TLS" in caplog.text
    assert "LISTENING ON 0.0.0.0 FOR EVERYBODY" in caplog.text


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


def test_the_registry_of_the_environment_is_no_word_of_a_command(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://user:secret@host/name")
    assert not any("secret" in word for word in records_command(Path("out"), None))
    assert records_command(Path("out"), "sqlite:///x.db")[-2:] == ("--registry", "sqlite:///x.db")
