"""What a device costs, of a small world."""

from __future__ import annotations

import json

import pytest

from benchmarks.federated.device import copied, main, needed
from federated.clients import client_files, prepare
from federated.protocol.messages import PHASES
from tests.federated import small_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    world = tmp_path_factory.mktemp("device")
    config = small_world.config(clients=4, population=6, neighbours=4, settings=("cpp5",), served="cpp5")
    prepare.prepare(config, small_world.write(world / "out"), world / "federated")
    return world / "federated"


@pytest.mark.slow
def test_a_round_is_printed_phase_by_phase_and_nothing_is_left_behind(folder, capsys):
    main([str(folder), "--clients", "4", "--events", "30", "--json"])
    printed = capsys.readouterr().out
    found = json.loads(printed.splitlines()[-1])
    assert list(found["phases"]) == list(PHASES)
    assert all(spent["milliseconds"] > 0 for spent in found["phases"].values())
    assert found["phases"]["train"]["up"] > found["phases"]["agree_update"]["up"] == 64 / 1024
    assert found["packages"]["torch"] > found["packages"]["pydantic"]
    assert found["memory_mib"] > 50
    assert "| train |" in printed
    assert not list(folder.glob("clients/*/round-*"))
    assert not list(folder.glob("memory/*/answers"))


def test_what_a_device_needs_is_what_its_extra_names_and_no_server():
    names = needed("sluice", ["device"])
    assert {"torch", "pyarrow", "cryptography", "pydantic"} <= names
    assert not names & {"flwr", "pyspark", "torch-geometric", "grpcio"}
    assert "flwr" in needed("sluice", ["federated"])


def test_clients_are_copied_without_what_they_remember(folder, tmp_path):
    copied(folder, tmp_path / "copy", 2)
    assert client_files.count(tmp_path / "copy") == 2
    assert not client_files.memory(tmp_path / "copy", 0).exists()
