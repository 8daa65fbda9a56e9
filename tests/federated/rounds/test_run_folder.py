"""What a run leaves in its folder, and takes up again."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.bundle.bundle import load_weights
from contracts.errors import FederatedError
from contracts.summaries.federated import RoundFigures
from federated.rounds.run_folder import BEST, name_of, save, saved

ROWS, DENSE = np.ones((4, 2), np.float32), np.zeros(3, np.float32)


def figures(number):
    return RoundFigures(round=number, clients=3, union=0, declared=1.0, lost={}, seconds_per_phase={}, abandoned=0,
                        abandoned_uploads=(), bytes={}, left_out=(), waited=0, seconds=1.0)


def model(number):
    return {"rows": ROWS * number, "dense": DENSE, "round": np.array([number]), "momentum": DENSE + 1}


def test_a_restart_takes_up_the_last_model_and_as_many_rounds(tmp_path):
    assert saved(tmp_path, ROWS, DENSE) is None
    tmp_path.joinpath("run").mkdir()
    save(tmp_path / "run", [figures(1)], model(1), True)
    save(tmp_path / "run", [figures(1), figures(2)], model(2), False)
    taken_up = saved(tmp_path / "run", ROWS, DENSE)
    assert taken_up is not None
    found, history = taken_up
    assert (found["rows"] == 2 * ROWS).all()
    assert (found["momentum"] == DENSE + 1).all()
    assert [entry.round for entry in history] == [1, 2]
    best = load_weights(tmp_path / "run" / BEST)
    assert set(best) == {"rows", "dense", "round"}
    assert (best["rows"] == ROWS).all()


def test_of_a_history_that_is_ahead_of_the_model_as_much_counts_as_the_model_has(tmp_path):
    save(tmp_path, [figures(1), figures(2)], model(1), True)
    taken_up = saved(tmp_path, ROWS, DENSE)
    assert taken_up is not None
    assert len(taken_up[1]) == 1


def test_a_model_of_another_shape_is_refused(tmp_path):
    save(tmp_path, [figures(1)], model(1), True)
    with pytest.raises(FederatedError, match="another shape"):
        saved(tmp_path, ROWS[:3], DENSE)


def test_a_run_has_one_name_and_each_folder_its_own(tmp_path):
    assert name_of(tmp_path / "one") == name_of(tmp_path / "one") != name_of(tmp_path / "other")
    assert len(name_of(tmp_path / "one")) == 16
