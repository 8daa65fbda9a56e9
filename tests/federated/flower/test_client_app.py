"""Which settings a node takes part in."""

from __future__ import annotations

import numpy as np

from federated.clients import prepare
from federated.device.own_client import OwnClients
from federated.flower.client_app import ELIGIBLE, REFUSED, UNMASKED, app, app_of
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.protocol.byte_count import ByteCount
from federated.protocol.messages import Message
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
        replies = FlowerExchange(grid, [0], None, ByteCount(), notes.append)("keys", {0: greeting})
        assert bool(replies) == (not refusal)
        assert not refusal or refusal in caplog.messages[-1]
        assert notes == ([] if not refusal else [f"keys: client 0 replies with an error: {REFUSED}"])


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
    assert not FlowerExchange(grid, [0], None, ByteCount(), notes.append)(
        "keys", {0: {"round": np.array(5, np.int64), "clients": np.array(9, np.int32),
                          "run": np.zeros(32, np.uint8)}})
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

    assert exchange("keys", greeting(5))
    busy.touch()
    assert not exchange("keys", greeting(6))
    assert "takes part in no round now" in caplog.messages[-1]
    assert not exchange("shares", {0: {"round": np.array(5)}})
    assert "a message has no 'peers'" in caplog.messages[-1]  # past that check
    busy.unlink()
    assert exchange("keys", greeting(6))
