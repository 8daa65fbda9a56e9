"""Each optimiser against its formula written out round by round; rows that nobody trained stand still."""

from __future__ import annotations

import numpy as np
import pytest

from federated.averaging.server_optimizer import ServerOptimizer

ROUNDS, ROWS, WIDTH = 5, 4, 3
AVERAGES = np.random.default_rng(5).normal(size=(ROUNDS, ROWS, WIDTH))


def moved(optimizer: ServerOptimizer, rounds: int = ROUNDS) -> np.ndarray:
    return np.sum([optimizer.step("rows", average) for average in AVERAGES[:rounds]], axis=0)


def test_without_one_the_step_is_the_average():
    assert (ServerOptimizer().step("rows", AVERAGES[0]) == AVERAGES[0]).all()


def test_momentum_is_a_sum_of_averages_that_fades():
    expected = sum(0.5 * 0.8 ** (late - early) * AVERAGES[early] for late in range(ROUNDS) for early in range(late + 1))
    assert moved(ServerOptimizer("momentum", rate=0.5, beta1=0.8)) == pytest.approx(expected)


def test_adam_is_the_papers():
    first = second = total = np.zeros((ROWS, WIDTH))
    for average in AVERAGES:
        first = 0.9 * first + 0.1 * average
        second = 0.99 * second + 0.01 * average**2
        total = total + 0.2 * first / (np.sqrt(second) + 0.05)
    assert moved(ServerOptimizer("adam", rate=0.2, tau=0.05)) == pytest.approx(total)


def test_adams_steps_do_not_hang_on_the_size_of_updates():
    small = ServerOptimizer("adam", tau=1e-12).step("rows", AVERAGES[0] * 1e-3)
    assert small == pytest.approx(ServerOptimizer("adam", tau=1e-12).step("rows", AVERAGES[0]))


@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_a_row_that_nobody_trained_stands_still_and_keeps_its_moments(kind):
    absent = np.array([True, False, True, True])
    optimizer, sparse = ServerOptimizer(kind), ServerOptimizer(kind)
    for number, average in enumerate(AVERAGES):
        step = sparse.step("rows", np.where(absent[:, None], average, 0) if number == 2 else average,
                           absent if number == 2 else np.ones(ROWS, bool))
        assert (step[1] == 0).all() == (number == 2)
        if number != 2:
            expected = optimizer.step("rows", average)
            assert step[1] == pytest.approx(expected[1])


@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_a_restart_goes_on_as_if_there_had_been_none(kind):
    whole, half = ServerOptimizer(kind), ServerOptimizer(kind)
    moved(half, 3)
    stored = dict(half.state()) | {"rows": np.zeros(3)}
    again = ServerOptimizer(kind)
    again.restore(stored)
    moved(whole, 3)
    for average in AVERAGES[3:]:
        assert again.step("rows", average) == pytest.approx(whole.step("rows", average))
    assert "rows" not in again.state()


def test_parts_have_moments_of_their_own():
    optimizer = ServerOptimizer("momentum")
    optimizer.step("rows", AVERAGES[0])
    assert optimizer.step("dense", AVERAGES[1, 0]) == pytest.approx(AVERAGES[1, 0])
