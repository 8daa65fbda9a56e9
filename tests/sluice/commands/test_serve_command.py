from __future__ import annotations

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contracts.errors import ConfigError
from serving.access.doors import Doors, warnings
from sluice.cli import app
from sluice.commands.serve_command import open_doors, parse_doors, processes, stores

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


def test_a_stream_needs_a_folder_and_both_stores_an_address(tmp_path):
    store = "redis://127.0.0.1:1/0"
    assert stores(None, None, None) == {"user_store": None, "event_stream": None}
    assert stores(store, store, tmp_path) == {"user_store": store, "event_stream": store}
    with pytest.raises(ConfigError, match="--fresh"):
        stores(None, store, None)
    for users, events in ((store, "localhost"), ("localhost", None)):
        with pytest.raises(ConfigError, match="no address"):
            stores(users, events, tmp_path)


def test_the_store_of_users_may_be_a_folder(tmp_path):
    assert stores(str(tmp_path / "users"), None, None)["user_store"] == str(tmp_path / "users")


def test_there_are_as_many_workers_as_cores_unless_told_and_no_more_than_could_start(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    assert [processes(wanted) for wanted in (None, 1, 192)] == [12, 1, 192]
    with pytest.raises(ConfigError, match="--workers 193 is above 192, the most of a machine with 12 cores"):
        processes(193)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert [processes(wanted) for wanted in (None, 64)] == [1, 64]


def test_the_command_refuses_a_registry_that_nobody_would_ask(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    refused = CliRunner().invoke(app, ["serve", str(tmp_path), "--port=0", "--registry=sqlite:///mlflow.db"])
    assert refused.exit_code == 2
    assert "leave --registry out" in refused.output


def test_the_command_refuses_a_cache_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    refused = CliRunner().invoke(app, ["serve", str(tmp_path), "--port=0", f"--cache={tmp_path / 'kept'}"])
    assert refused.exit_code == 2
    assert "leave --cache out" in refused.output


def test_the_command_refuses_a_host_that_is_not_this_machines(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for option in ("--host", "--metrics-host"):
        asked = ["serve", str(tmp_path), "--port=0", "--workers=1", "--metrics-port=0", option, "192.0.2.1"]
        refused = CliRunner().invoke(app, asked)
        assert refused.exit_code == 2
        assert f"{option} '192.0.2.1' is no address of this machine" in refused.output


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


@pytest.mark.parametrize("words", [("--compare", "10.0.0.5:7"), ("--records", "out")])
def test_what_only_the_console_would_show_is_refused_without_it(words, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    heard = CliRunner().invoke(app, ["serve", str(tmp_path), *words])
    assert heard.exit_code == 2
    assert f"{words[0]} would be shown by the console" in heard.output
    assert "--metrics-port" in heard.output
