from __future__ import annotations

import json
import re

import pytest

from benchmarks.federated.federated_budget import main
from tests.benchmarks.printed_figures import refuses


@pytest.mark.slow
def test_each_setting_has_the_same_tries_and_its_best_is_shown(log, capsys):
    config, out = log
    main([str(config), "--out", str(out), "--rounds", "2", "--epochs", "1", "2", "--rates", "0.1", "1.0", "--servers",
          "none", "adam:0.03", "--json"])
    text = capsys.readouterr().out
    tries = [float(auc) for auc in re.findall(r"\| (?:learning_rate|server) \| [\w. ]+ \| ([\d.]+) \|", text)]
    found = json.loads(text.splitlines()[-1])
    assert [(one["setting"], one["epochs"]) for one in found] == [
        ("cpp2-none-holders", 1), ("fedavg", 1), ("cpp2-none-holders", 2), ("fedavg", 2)]
    assert len(tries) == len(found) * (2 + 2)
    for at, one in enumerate(found):
        assert round(one["validation"][0], 4) == max(tries[4 * at : 4 * at + 4])
        assert 0 < one["equal_work"][0] <= one["validation"][0]
        assert 0 < one["test"][0] < 1


def test_wrong_options_are_refused():
    assert refuses(main, "some.toml")
    assert refuses(main, "some.toml", "--out", "out", "--seeds", "two")
