"""What is started is stopped, what fails is told with its output, and certificates are what TLS wants."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from benchmarks.federated.loopback import (
    environment,
    flwr,
    free_port,
    name_superlink,
    process,
    wait_for_file,
    wait_for_port,
    write_certificate,
    write_node_key,
)


def test_a_process_listens_until_its_block_ends_and_its_output_is_kept(tmp_path):
    port = free_port()
    with process(tmp_path, "web", "python", "-u", "-m", "http.server", "--bind", "127.0.0.1", str(port)) as made:
        wait_for_port(port, tmp_path / "web.log")
        assert made.poll() is None
    assert made.poll() is not None
    assert "Serving HTTP" in (tmp_path / "web.log").read_text()


def test_nodes_whose_files_lie_elsewhere_take_this_machines_kernels_as_they_are(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert environment(tmp_path)["HOME"] == str(tmp_path)
    assert environment(tmp_path)["XDG_CACHE_HOME"] == str(Path.home() / ".cache")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert environment(tmp_path)["XDG_CACHE_HOME"] == "/elsewhere"


def test_what_does_not_come_is_told_with_the_logs(tmp_path):
    (tmp_path / "some.log").write_text("it broke down")
    with pytest.raises(TimeoutError, match="it broke down"):
        wait_for_port(free_port(), tmp_path / "some.log", seconds=0.0)
    with pytest.raises(TimeoutError, match="it broke down"):
        wait_for_file(tmp_path / "summary.json", 0.0, tmp_path)


def test_a_command_that_fails_is_told_with_its_output(tmp_path):
    with pytest.raises(RuntimeError, match="No such command"):
        flwr(tmp_path, "nonsense")


def test_a_client_that_knows_the_authority_believes_the_server(tmp_path):
    write_certificate(tmp_path)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=tmp_path / "ca.pem")
    server.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    near, far = socket.socketpair()
    answering = threading.Thread(target=lambda: server.wrap_socket(far, server_side=True).close())
    answering.start()
    with client.wrap_socket(near, server_hostname="127.0.0.1") as talk:
        assert talk.version() == "TLSv1.3"
    answering.join()


def test_a_nodes_keys_are_a_pair_as_openssh_writes_them(tmp_path):
    private, public = write_node_key(tmp_path, "node0")
    assert private.read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert public.read_text().startswith("ecdsa-sha2-nistp384 ")


def test_a_run_that_ended_without_the_file_is_not_waited_for(tmp_path):
    """What the run says is asked of the SuperLink."""
    (tmp_path / "superlink.log").write_text("Created run 11\nFinished task 5 of run 11\nCreated run 12\n")
    with pytest.raises(TimeoutError):
        wait_for_file(tmp_path / "summary.json", 0.0, tmp_path)
    with (tmp_path / "superlink.log").open("a") as log:
        log.write("Finished task 6 of run 12\n")
    name_superlink(tmp_path, free_port(), "insecure = true")
    with pytest.raises(RuntimeError, match="flwr log 12 ended with"):
        wait_for_file(tmp_path / "summary.json", 60.0, tmp_path)
