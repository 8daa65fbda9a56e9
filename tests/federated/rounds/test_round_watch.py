"""What a run's rounds prove, from the rounds themselves."""

from __future__ import annotations

import pytest

from federated.clients import prepare
from federated.jobs.simulate import run_setting
from federated.rounds.public_setup import public_setup
from federated.rounds.round_watch import RoundWatch
from tests.federated import small_world


def proven(tmp_path, **changes):
    config = small_world.config(settings=("cpp5",), served="cpp5", rounds=8, evaluate_every=9, **changes)
    out, folder = small_world.write(tmp_path / "out"), tmp_path / "federated"
    prepare.prepare(config, out, folder)
    watch = RoundWatch(public_setup(folder, "cpp5"), folder, 8)
    run_setting("cpp5", config, out, folder, lambda text, done, total: None, windows=(), watch=watch)
    return watch.curve()


@pytest.mark.slow
def test_rounds_of_clients_that_always_come_together_prove_nothing_and_others_do(tmp_path):
    assert proven(tmp_path / "together").both[-1] == 0.0
    anew = proven(tmp_path / "anew", cohorts=False)
    assert anew.rounds[-1] == 8
    assert anew.both[-1] > 0.0
