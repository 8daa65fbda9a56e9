from __future__ import annotations

import re
import tomllib

import pytest

from benchmarks.federated.federated_choice import SEARCHED, SERVERS, main
from tests.benchmarks.printed_figures import refuses


def test_what_is_chosen_is_the_best_tried_and_can_be_pasted(log, capsys):
    config, out = log
    main([str(config), "--out", str(out), "--rounds", "2", "--settings", "cpp2-none-holders", "--rates", "0.1", "1.0",
          "--what", "learning_rate"])
    text = capsys.readouterr().out
    tried = {float(value): float(auc) for value, auc in re.findall(r"\| learning_rate \| (\S+) \| (\S+) \|", text)}
    assert set(tried) == {0.1, 1.0}
    assert all(0 <= auc <= 1 for auc in tried.values())
    pasted = tomllib.loads(text[text.index("\n[federated.") :])["federated"]["overrides"]
    assert set(pasted) == set(SEARCHED["cpp2-none-holders"])
    assert {tried[chosen["learning_rate"]] for chosen in pasted.values()} == {max(tried.values())}


def test_wrong_options_are_refused():
    assert refuses(main, "some.toml", "--out", "out", "--settings", "cpp9")
    assert refuses(main, "some.toml")


@pytest.mark.slow
def test_an_optimiser_of_the_server_is_chosen_with_its_rate(log, capsys):
    config, out = log
    main([str(config), "--out", str(out), "--rounds", "1", "--settings", "cpp2-none-holders", "--what", "server"])
    text = capsys.readouterr().out
    assert len(re.findall(r"\| server \| (none|momentum|adam)", text)) == len(SERVERS)
    pasted = tomllib.loads(text[text.index("\n[federated.") :])["federated"]["overrides"]
    assert all(chosen["server_optimizer"] in {"none", "momentum", "adam"} for chosen in pasted.values())
