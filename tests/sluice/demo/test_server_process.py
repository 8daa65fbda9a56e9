"""A server of one's own: it comes up on a free port, ends when asked, and says why when it cannot."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import typer

from contracts.artifacts import Artifacts
from contracts.errors import SluiceError
from sluice.cli import app
from sluice.demo.server_process import ServerProcess


def test_a_server_listens_where_it_says_and_ends_well_when_asked(run: Artifacts, tmp_path) -> None:
    server = ServerProcess(run.bundle, tmp_path / "server.log")
    try:
        with socket.create_connection(("127.0.0.1", server.port), 5):
            assert server.target == f"127.0.0.1:{server.port}"
    finally:
        assert server.stop() == 0
    assert server.stop() == 0  # once more does no harm


def test_a_server_that_is_not_waited_for_is_when_it_is_asked_for(tmp_path) -> None:
    server = ServerProcess(tmp_path / "nothing", tmp_path / "server.log", wait=False)
    with pytest.raises(SluiceError, match="did not start"):
        assert server.target
    assert server.process.poll() is not None


def test_a_bundle_that_is_none_is_an_error_with_the_logs_last_line(tmp_path) -> None:
    with pytest.raises(SluiceError, match=r"did not start: sluice: .*nothing.*whole log: .*server\.log"):
        ServerProcess(tmp_path / "nothing", tmp_path / "server.log")


def test_what_the_environment_tells_a_server_is_not_for_this_one(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever option of `sluice serve` has a variable; what is no setting of a server goes along."""
    told = {str(option.envvar) for option in typer.main.get_group(app).commands["serve"].params if option.envvar}
    assert told
    for name in (*told, "SLUICE_KERNELS"):
        monkeypatch.setenv(name, "of another")
    server = ServerProcess(tmp_path / "nothing", tmp_path / "server.log", wait=False)
    environment = Path(f"/proc/{server.process.pid}/environ").read_text().split("\0")
    with pytest.raises(SluiceError, match="nothing"):
        assert server.target
    assert {name for name in told if f"{name}=of another" in environment} == set()
    assert "SLUICE_KERNELS=of another" in environment
