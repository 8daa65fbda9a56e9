from __future__ import annotations

import numpy as np
import pytest

from benchmarks.federated.fedlaavg import CLASSES, CLIENTS, METHODS, PERIOD, Digits, main, pattern
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


@pytest.fixture(scope="module")
def digits() -> Digits:
    return Digits(0)


def test_every_method_is_printed_for_every_pattern(capsys):
    main(["--rounds", "5", "--seeds", "1", "--json"])
    found = last_line(capsys.readouterr().out)["fedlaavg"]
    assert all_finite(found)
    for methods in found.values():
        assert set(methods) == set(METHODS)
        assert all(0 <= row["minimum"] <= row["mean"] <= 1 for row in methods.values())


def test_a_client_has_one_class_and_no_row_of_the_test(digits):
    for client, rows in enumerate(digits.rows):
        assert set(digits.labels[rows]) == {client % CLASSES}
        assert rows.min() >= len(digits.test)
    assert sum(map(len, digits.rows)) + len(digits.test) == len(digits.labels)


def test_a_local_step_goes_down_the_clients_loss_and_a_scale_of_zero_stays(digits):
    start, generator = np.zeros(digits.size), np.random.default_rng(0)
    assert not digits.descend([0], start, np.zeros(1), generator).any()
    (moved,) = digits.descend([0], start, np.ones(1), generator)
    scores = digits.inputs[digits.rows[0]] @ moved.reshape(-1, CLASSES)
    assert (scores.argmax(axis=1) == 0).all()


def test_alternating_classes_are_gone_in_the_second_half_of_a_period():
    available = pattern(3, seed=0)
    assert len(available(1)) == CLIENTS
    assert {client % CLASSES for client in available(PERIOD // 2 + 1)} == set(range(3, CLASSES))


@pytest.mark.parametrize("name", METHODS)
def test_training_beats_a_guess(name, digits):
    assert METHODS[name](digits, pattern(0, 0), 20, 0)[-1] > 2 / CLASSES


def test_a_wrong_option_is_refused():
    assert refuses(main, "--rounds", "many")
