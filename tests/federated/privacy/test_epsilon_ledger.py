"""What a client has spent, over processes and runs."""

from __future__ import annotations

import math

import pytest

from contracts.errors import ProtocolError
from federated.privacy import skellam
from federated.privacy.epsilon_ledger import EpsilonLedger


def test_sums_of_different_noise_compose(tmp_path):
    noises = (1e5, 1e5, 4e5)
    for variance in noises:
        EpsilonLedger(tmp_path / "ledger.json").note_sum(skellam.renyi(variance, 100.0, 500.0))
    spent = EpsilonLedger(tmp_path / "ledger.json").read()
    costs = [sum(each) for each in zip(*(skellam.renyi(variance, 100.0, 500.0) for variance in noises), strict=True)]
    assert spent.sums == 3
    assert spent.epsilon_noise(1e-6) == pytest.approx(skellam.from_renyi(costs, 1e-6))
    assert skellam.epsilon(1e5, 100.0, 500.0, 2, 1e-6) < skellam.from_renyi(costs, 1e-6)
    assert skellam.from_renyi(costs, 1e-6) < skellam.epsilon(1e5, 100.0, 500.0, 3, 1e-6)


def test_nothing_bounds_what_a_level_without_doubt_says(tmp_path):
    ledger = EpsilonLedger(tmp_path / "ledger.json")
    assert (ledger.read().epsilon_per_row, ledger.read().epsilon_noise(1e-5)) == (0, None)
    ledger.note_answers("cpp4", 1.1, 10)
    ledger.note_answers("cpp1", math.inf, 4)
    assert ledger.read().epsilon_per_row is None
    assert ledger.read().rows == 10


def test_a_damaged_ledger_is_not_begun_anew(tmp_path):
    (tmp_path / "ledger.json").write_text("{}}")
    with pytest.raises(ProtocolError, match="restore it"):
        EpsilonLedger(tmp_path / "ledger.json").read()
