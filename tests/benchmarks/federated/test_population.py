"""Rounds of a few of many clients: bytes hang on the round, not on the population."""

from __future__ import annotations

import json

import pytest

from benchmarks.federated import population


@pytest.mark.slow
def test_a_clients_bytes_do_not_grow_with_the_population(capsys):
    found = []
    for clients in (200, 400):
        population.main(["--clients", str(clients), "--round", "6", "--rows", "200", "--json"])
        found.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    small, large = found
    assert small["round"] == large["round"] == 6
    assert abs(large["mib"] - small["mib"]) < 0.2 * small["mib"]
    assert large["list_mib"] == 2 * small["list_mib"]
    assert large["seconds_per_round"] > 0
