"""`flwr run .` in Flower's simulation engine, and three SuperNodes with TLS and node authentication."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from contracts.summaries import summary
from contracts.summaries.federated import ServerAppSummary
from federated.clients import prepare
from tests.federated import small_world
from tests.federated.flower_processes import (
    NAME,
    ROOT,
    flwr,
    free_port,
    name_superlink,
    process,
    wait_for_file,
    wait_for_port,
    write_certificate,
    write_node_key,
)

ROUNDS = 2


def prepared(tmp_path, clients):
    config = small_world.config(clients=clients, neighbours=4, timeout=300.0, settings=("cpp2", "fedlaavg"))
    prepare.prepare(config, small_world.write(tmp_path / "out"), tmp_path / "federated")
    return tmp_path / "federated"


def settings(folder, nodes, setting="cpp2"):
    return f'folder="{folder}" setting="{setting}" rounds={ROUNDS} nodes={nodes}'


@pytest.mark.slow
def test_flwr_run_completes_rounds_in_the_simulation_engine(tmp_path):
    folder, home, port = prepared(tmp_path, 4), tmp_path / "home", free_port()
    home.mkdir()
    name_superlink(home, port, "insecure = true")
    with process(home, "superlink", "flower-superlink", "--insecure", "--simulation", "--port", str(port)):
        wait_for_port(port, home / "superlink.log")
        for setting in ("cpp2", "fedlaavg"):
            flwr(home, "run", str(ROOT), NAME, "-c", settings(folder, 4, setting), "--federation-config",
                 "num-supernodes=4")
            wait_for_file(folder / "runs" / f"{setting}-flower" / summary.FILE, 900, home)
    for setting in ("cpp2", "fedlaavg"):
        found = summary.required(folder / "runs" / f"{setting}-flower", ServerAppSummary, "flwr run")
        assert found.rounds == ROUNDS


@pytest.mark.slow
def test_three_authenticated_supernodes_complete_rounds_over_tls(tmp_path):
    folder, home, port = prepared(tmp_path, 3), tmp_path / "home", free_port()
    home.mkdir()
    write_certificate(home)
    name_superlink(home, port, f'root-certificates = "{home / "ca.pem"}"')
    tls = [f"--ssl-{kind}file={home / name}" for kind, name in
           (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem"))]
    with ExitStack() as stack:
        stack.enter_context(process(
            home, "superlink", "flower-superlink", *tls, "--enable-supernode-auth", "--port", str(port)))
        wait_for_port(port, home / "superlink.log")
        for number in range(3):
            private, public = write_node_key(home, f"node{number}")
            flwr(home, "supernode", "register", str(public), NAME)
            stack.enter_context(process(
                home, f"supernode{number}", "flower-supernode", f"--root-certificates={home / 'ca.pem'}",
                f"--superlink=127.0.0.1:{port}", f"--auth-supernode-private-key={private}", *tls,
                f"--port={free_port()}", f"--node-config=partition-id={number}",
            ))
        flwr(home, "run", str(ROOT), NAME, "-c", settings(folder, 3))
        wait_for_file(folder / "runs" / "cpp2-flower" / summary.FILE, 900, home)
    found = summary.required(folder / "runs" / "cpp2-flower", ServerAppSummary, "flwr run")
    assert found.rounds == ROUNDS
    assert all(entry.clients == 3 for entry in found.history)
