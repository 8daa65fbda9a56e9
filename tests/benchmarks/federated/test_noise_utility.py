"""More noise costs AUC and less epsilon; with more clients a round the same noise costs less."""

from __future__ import annotations

import json

from benchmarks.federated import noise_utility


def test_the_table_is_printed_and_more_noise_is_less_epsilon(monkeypatch, capsys):
    monkeypatch.setattr(noise_utility, "NOISES", (0.0, 1.0, 64.0))
    noise_utility.main(["--clients", "300", "--rounds", "12", "--of-round", "100", "--json"])
    plain, some, most = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert plain["epsilon"] is None
    assert some["epsilon"] > most["epsilon"] > 0
    assert some["epsilon_every"] > some["epsilon"]
    assert plain["round"] >= 100
    assert plain["auc"] > 0.5
