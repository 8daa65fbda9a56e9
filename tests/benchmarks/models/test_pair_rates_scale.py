from __future__ import annotations

import pytest

from benchmarks.models.pair_rates_scale import Clock, main, synthetic
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_the_first_batches_are_timed_and_scaled_to_an_epoch(capsys):
    main(["--nodes", "5000", "--edges", "12000", "--batches", "1"])
    found = last_line(capsys.readouterr().out)
    assert all_finite(found)
    assert (found["nodes"], found["edges"], found["pairs trained on"]) == (5000, 12_000, 4096)
    assert 0 < found["share of an epoch"] <= 1
    hours = found["pairs to train on"] / found["pairs per second"] / 3600
    assert found["hours per epoch"] == pytest.approx(hours)


def test_the_graph_has_the_asked_size_and_few_pairs_repeat():
    graph = synthetic(6000, 9000)
    assert (graph.nodes, len(graph.edges.relation)) == (6000, 9000)
    assert synthetic(6000, 9000).edges.left.equal(graph.edges.left)
    assert not synthetic(6000, 9000, seed=1).edges.left.equal(graph.edges.left)


def test_laps_name_both_clocks():
    clock = Clock()
    seconds, processor = clock.lap("rest")
    assert seconds >= 0
    assert processor >= 0
    assert set(clock.spent) == {"seconds to rest", "processor seconds to rest"}


def test_a_wrong_option_is_refused():
    assert refuses(main, "--batches", "few")
