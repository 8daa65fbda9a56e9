"""Which settings a node takes part in."""

from __future__ import annotations

import shutil

import numpy as np

from federated.clients import client_files, prepare
from federated.device.own_client import OwnClients
from federated.flower.client_app import ELIGIBLE, REFUSED, UNMASKED, app, app_of
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.protocol.messages import Message
from federated.protocol.round_server import RoundServer
from federated.rounds.byte_count import ByteCount
from federated.rounds.public_setup import public_setup
from tests.federated import small_world


def test_a_node_takes_part_in_no_setting_without_masks_unless_it_is_told_to(tmp_path, caplog):
    """Whoever starts a run names the setting, and baselines are among those of a configuration."""
    config = small_world.config(settings=("cpp5", "fedavg", "central"), served="cpp5")
    prepare.prepare(config, small_world.write(tmp_path / "out"), tmp_path / "federated")
    greeting: Message = {"round": np.array(5, np.int64), "clients": np.array(9, np.int32),
                          "run": np.zeros(32, np.uint8)}
    for setting, unmasked, refusal in (
        ("cpp5", False, ""), ("fedavg", False, "has no masks"), ("central", False, "has no masks"),
        ("fedavg", True, "signs nothing"),  # past that check: what it refuses is the phase
    ):
        notes: list[str] = []
        settings = {"folder": str(tmp_path / "federated"), "setting": setting}
        grid = InProcessGrid(app, {0: 0}, {**settings}, node_config={UNMASKED: unmasked})
        replies = list(FlowerExchange(grid, [0], None, ByteCount(), notes.append)("keys", {0: greeting}))
        assert bool(replies) == (not refusal)
        assert not refusal or refusal in caplog.messages[-1]
        assert notes == ([] if not refusal else [f"keys: client 0 replies with an error: {REFUSED}"])


def test_a_nodes_own_folder_goes_before_that_of_the_run(tmp_path):
    """Whoever starts a run names its folder: where all keys but its own are the server's, it takes no part."""
    out, run = small_world.write(tmp_path / "out"), {"folder": str(tmp_path / "forged"), "setting": "cpp5"}
    for name in ("own", "forged"):
        prepare.prepare(small_world.config(settings=("cpp5",), served="cpp5", clients=6, population=6), out,
                        tmp_path / name)
    victims = client_files.client(tmp_path / "own", 0) / client_files.IDENTITY
    shutil.copy(victims, client_files.client(tmp_path / "forged", 0) / client_files.IDENTITY)
    client_files.write_identities(tmp_path / "forged")
    setup = public_setup(tmp_path / "forged", "cpp5")
    finished = {}
    for named in ("own", "forged"):
        grid = InProcessGrid(app, {node: node for node in range(6)}, {**run})
        grid.contexts[0].node_config["folder"] = str(tmp_path / named)
        server = RoundServer(setup.plan, 5, FlowerExchange(grid, list(range(6)), None, ByteCount()),
                             *setup.networks.read())
        finished[named] = server.run(list(range(6))).finished
    assert finished == {"own": [1, 2, 3, 4, 5], "forged": [0, 1, 2, 3, 4, 5]}


def test_what_goes_wrong_on_a_client_stays_there(tmp_path, caplog, monkeypatch):
    """An exception may quote rows of the client's data."""
    folder = tmp_path / "federated"
    prepare.prepare(small_world.config(), small_world.write(tmp_path / "out"), folder)

    def fail(*arguments):
        raise KeyError("item-007")

    clients = OwnClients()
    monkeypatch.setattr(clients.of(folder, "cpp2", 0), "handle", fail)
    grid = InProcessGrid(app_of(clients), {0: 0}, {"folder": str(folder), "setting": "cpp2"})
    notes: list[str] = []
    assert not list(FlowerExchange(grid, [0], None, ByteCount(), notes.append)(
        "keys", {0: {"round": np.array(5, np.int64), "clients": np.array(9, np.int32),
                          "run": np.zeros(32, np.uint8)}}))
    assert "item-007" in caplog.text
    assert "item-007" not in notes[0]


def test_a_node_that_is_busy_begins_no_round_and_ends_one_that_it_has_begun(tmp_path, caplog):
    """Its owner's command looks for a file."""
    folder, busy = tmp_path / "federated", tmp_path / "busy"
    prepare.prepare(small_world.config(settings=("cpp5",), served="cpp5"), small_world.write(tmp_path / "out"), folder)
    grid = InProcessGrid(app, {0: 0}, {"folder": str(folder), "setting": "cpp5"},
                         node_config={ELIGIBLE: f"test ! -e {busy}"})
    exchange = FlowerExchange(grid, [0], None, ByteCount())

    def greeting(number):
        return {0: {"round": np.array(number), "clients": np.array(9, np.int32), "run": np.zeros(32, np.uint8)}}

    assert list(exchange("keys", greeting(5)))
    busy.touch()
    assert not list(exchange("keys", greeting(6)))
    assert "takes part in no round now" in caplog.messages[-1]
    assert not list(exchange("shares", {0: {"round": np.array(5)}}))
    assert "a message has no 'peers'" in caplog.messages[-1]  # past that check
    busy.unlink()
    assert list(exchange("keys", greeting(6)))
