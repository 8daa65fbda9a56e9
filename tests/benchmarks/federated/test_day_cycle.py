from __future__ import annotations

import pytest

from benchmarks.federated import day_cycle
from contracts.artifacts import Artifacts
from contracts.config.config import load
from tests.benchmarks.printed_figures import last_line, refuses


@pytest.mark.slow
def test_a_method_is_printed_for_every_case(log, capsys):
    config, out = log
    day_cycle.main(["--config", str(config), "--out", str(out), "--rounds", "5", "--seeds", "1", "--rates", "0.1",
                    "--methods", "fedavg", "--json"])
    found = last_line(capsys.readouterr().out)["day_cycle"]
    assert set(found) == {"fedavg"}
    assert set(found["fedavg"]) == set(day_cycle.CASES)
    assert all(0 <= case["minimum"] <= case["mean"] <= 1 for case in found["fedavg"].values())


def test_only_the_last_fifth_of_the_rounds_counts(log):
    path, out = log
    found = day_cycle.last_rounds(load(path), Artifacts(out), "fedavg", "random", 0.1, 5, "test")
    assert len(found) == 1
    assert all(0 <= auc <= 1 for auc in found)


def test_the_configuration_of_the_benchmark_knows_all_methods():
    config = load(day_cycle.CONFIG)
    assert config.simulation is not None
    assert all(config.federated.of(setting).learning_rate > 0 for setting in day_cycle.METHODS.values())


def test_wrong_options_are_refused():
    assert refuses(day_cycle.main, "--out", "out", "--methods", "fedsgd")
    assert refuses(day_cycle.main)
