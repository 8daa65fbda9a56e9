from __future__ import annotations

import argparse

import pytest

from benchmarks.models.pair_rates import main, mean_and_deviation, other_worlds, prepare
from contracts.artifacts import Artifacts
from contracts.config.config import load, parse
from contracts.errors import ConfigError
from tests.benchmarks import tiny_market
from tests.benchmarks.printed_figures import last_line, refuses


def test_a_cell_is_a_mean_with_its_deviation_and_a_count_is_one():
    assert mean_and_deviation([]) == ""
    assert mean_and_deviation([1200, 1200]) == "1,200"
    assert mean_and_deviation([0.25, 0.75]) == "0.5000 ± 0.3536"


def test_a_run_that_is_there_is_not_simulated_anew(tmp_path):
    out = Artifacts(tmp_path)
    out.encoding.mkdir(parents=True)
    with pytest.raises(ConfigError, match="another --out"):
        prepare(load(tiny_market.write(tmp_path / "tiny.toml")), out, None, 10)


def test_other_worlds_need_a_simulation():
    config = parse('name = "t"\nlog = { path = "p" }\nlabel = { expression = "y" }\n'
                   'fields = [{ name = "a", kind = "categorical", side = "user" }]\n')
    with pytest.raises(ConfigError, match="simulation"):
        other_worlds(config, argparse.Namespace(config="t.toml"))


def test_wrong_options_are_refused():
    assert refuses(main)
    assert refuses(main, "baselines", "some.toml", "--out", "o", "--baselines", "oracle")
    assert refuses(main, "worlds", "some.toml", "--out", "o", "--baselines", "none")


@pytest.mark.slow
def test_baselines_meet_the_same_rows_and_a_second_run_computes_nothing(run, capsys):
    asked = ["baselines", str(run.config), "--out", str(run.out), "--seeds", "1", "--rankers", "logistic_regression",
             "--baselines", "none", "table", "factorisation"]
    main(asked)
    found = last_line(capsys.readouterr().out)
    assert set(found["figures"]) == {"none", "table", "factorisation", "mean"}
    for name in ("none", "table", "factorisation"):
        assert 0 <= found["figures"][name]["logistic_regression AUC"][0] <= 1
    assert all(figures["zero x 1e4"][0] >= 0 for name, figures in found["figures"].items() if name != "none")
    gain = found["gains"]["logistic_regression, factorisation"]
    assert {f"over {base}{part}" for base in ("none", "table") for part in ("", ", low", ", high")} == gain.keys()
    assert gain["over none, low"] <= gain["over none, high"]
    about = found["about"]
    assert about["pairs seen together"] + about["pairs never seen"] <= about["pairs of all values"]
    kept = Artifacts(run.out).pair_rates / "baselines.jsonl"
    lines = kept.read_text(encoding="utf-8")
    main(asked)
    assert last_line(capsys.readouterr().out)["figures"] == found["figures"]
    assert kept.read_text(encoding="utf-8") == lines
