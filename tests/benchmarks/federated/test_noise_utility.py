"""More noise costs AUC and less epsilon; with more clients a round the same noise costs less."""

from __future__ import annotations

import json

import pytest

from benchmarks.federated import noise_utility


@pytest.mark.slow
def test_the_table_is_printed_and_more_noise_is_less_epsilon(monkeypatch, capsys):
    monkeypatch.setattr(noise_utility, "NOISES", (0.0, 1.0, 64.0))
    noise_utility.main(["--clients", "300", "--rounds", "12", "--of-round", "100", "--json"])
    plain, some, most = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert plain["epsilon"] is None
    assert some["epsilon"] > most["epsilon"] > 0
    assert some["epsilon_every"] > some["epsilon"]
    assert plain["round"] >= 100
    assert len(plain["auc"]) == 1
    assert plain["auc"][0] > 0.5


@pytest.mark.slow
def test_a_seed_is_another_log_and_the_worst_epsilon_of_all_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(noise_utility, "NOISES", (1.0,))
    noise_utility.main(["--clients", "200", "--rounds", "4", "--of-round", "50", "--seeds", "2", "--json"])
    (both,) = json.loads(capsys.readouterr().out.splitlines()[-1])
    alone = [noise_utility.trained(*noise_utility.parted(noise_utility.log_of(200, seed)), 50, 4, 1.0, seed)
             for seed in (1, 2)]
    assert both["auc"] == [score for one in alone for score in one.auc]
    assert both["auc"][0] != both["auc"][1]
    assert both["epsilon_every"] == max(one.epsilon_every or 0.0 for one in alone)
