"""Rounds over Flower's own processes, printed."""

from __future__ import annotations

import pytest

from benchmarks.federated.deployment import main
from federated.clients import prepare
from federated.protocol.messages import PHASES
from tests.benchmarks.printed_figures import all_finite, last_line, refuses
from tests.federated import small_world


@pytest.mark.slow
def test_seconds_of_every_phase_are_printed(tmp_path, capsys):
    config = small_world.config(clients=3, population=4, neighbours=4, settings=("cpp5",), served="cpp5")
    prepare.prepare(config, small_world.write(tmp_path / "out"), tmp_path / "federated")
    main([str(tmp_path / "federated"), "--nodes", "3", "--rounds", "2", "--json"])
    found = last_line(capsys.readouterr().out)
    assert list(found["phases"]) == list(PHASES)
    assert found["clients"] == [3, 3]
    assert len(found["rounds"]) == 1
    assert min(found["phases"].values()) > 0
    assert max(found["phases"].values()) <= found["first"] + found["rounds"][0]  # some come in the round before
    assert all_finite(found)


def test_one_round_is_refused():
    assert refuses(main, "folder", "--rounds", "1")
