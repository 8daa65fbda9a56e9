from __future__ import annotations

import pytest

from benchmarks.pipelines.features import grown, line, main, medians, simulated, table
from benchmarks.pipelines.kept_costs import keep
from benchmarks.pipelines.process_cost import Cost
from contracts.artifacts import Artifacts
from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from tests.benchmarks import tiny_market
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_a_configuration_without_a_simulation_is_refused(tmp_path):
    plain = tmp_path / "plain.toml"
    plain.write_text('name = "t"\nlog = { path = "p" }\nlabel = { expression = "y" }\n'
                     'fields = [{ name = "a", kind = "categorical", side = "user" }]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="simulation"):
        simulated(plain, 0.001, tmp_path, "1g")


def test_wrong_options_are_refused():
    assert refuses(main, "--millions", "many")
    assert refuses(main, "--engines", "abacus")


def test_pieces_are_merged_into_one_line_without_a_run(tmp_path, capsys):
    for engine, events, seconds in (("embedded", 500_000, 8), ("duckdb", 500_000, 4), ("embedded", 1_000_000, 12)):
        keep(tmp_path, engine, events, Cost(seconds, 10, 100, 0))
    main(["--out", str(tmp_path), "--merge", "--repetitions", "0", "--json"])
    found = last_line(capsys.readouterr().out)["features"]
    assert found["embedded"]["seconds"] == {"500000": 8, "1000000": 12}
    assert (found["embedded"]["slope"], found["duckdb"]["slope"]) == (8.0, None)


def test_to_merge_takes_a_folder():
    assert refuses(main, "--merge")


def test_users_and_items_grow_with_the_events():
    larger = grown(Simulation(events=1_000, users=100, items=10), 3_000)
    assert (larger.events, larger.users, larger.items) == (3_000, 300, 30)


def test_a_line_through_the_sizes_has_a_slope_and_an_intercept():
    assert line([(1, 12), (2, 14), (5, 20)]) == (2.0, 10.0)
    assert line([(1, 12)]) == (None, None)


def test_the_median_of_the_runs_counts_for_each_figure_by_itself():
    runs = [Cost(seconds, 10 - seconds, 100, 0) for seconds in (1, 9, 2)]
    found = medians({"embedded": {1_000_000: runs, 2_000_000: runs}})
    assert found["embedded"]["seconds"] == {"1000000": 2, "2000000": 2}
    assert found["embedded"]["cpu_seconds"] == {"1000000": 8, "2000000": 8}
    assert (found["embedded"]["slope"], found["embedded"]["intercept"]) == (0, 2)
    assert "| embedded | 1,000,000 | 2.0 | 8.0 | 100.0 | 0.0 |" in table(found)


@pytest.mark.slow
def test_figures_of_a_real_run(run):
    figures = run.features["features"]["embedded"]
    events = str(tiny_market.EVENTS)
    measured = {name: figures[name] for name in Cost._fields}
    assert all_finite(measured)
    assert figures["seconds"][events] > 0
    assert figures["cpu_seconds"][events] > 0
    assert 100 < figures["peak_mib"][events] < 10_000
    assert Artifacts(run.out).encoding.exists()
