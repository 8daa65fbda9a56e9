"""Estimates of a policy that never ran, against what it is truly worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from models.evaluation.off_policy import Estimate, Logged, doubly_robust, ips, snips

KINDS, ACTIONS, ROWS, REPEATS = 5, 4, 800, 300
WORLD = np.random.default_rng(0)
CHANCE = WORLD.uniform(0.05, 0.6, (KINDS, ACTIONS))  # of a reward, by kind of context and action


def softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values)
    return powers / powers.sum(axis=-1, keepdims=True)


LOGGING, TARGET = softmax(WORLD.normal(size=(KINDS, ACTIONS))), softmax(3 * CHANCE)
TRUTH = float((TARGET * CHANCE).sum(axis=1).mean())


def drawn(seed: int, logging: np.ndarray = LOGGING) -> tuple[Logged, np.ndarray, np.ndarray]:
    """A log of the logging policy; `logging` is what is written down as its probabilities."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, KINDS, ROWS)
    action = (random.random(ROWS)[:, None] > LOGGING.cumsum(axis=1)[kind]).sum(axis=1).clip(max=ACTIONS - 1)
    reward = (random.random(ROWS) < CHANCE[kind, action]).astype(float)
    return Logged(reward, logging[kind, action], TARGET[kind, action]), kind, action


def with_model(guess: np.ndarray, logging: np.ndarray = LOGGING) -> Callable[[int], Estimate]:
    def estimate(seed: int) -> Estimate:
        logged, kind, action = drawn(seed, logging)
        return doubly_robust(logged, guess[kind, action], (TARGET * guess).sum(axis=1)[kind])

    return estimate


def of_log(estimator: Callable[[Logged], Estimate]) -> Callable[[int], Estimate]:
    return lambda seed: estimator(drawn(seed)[0])


WRONG_MODEL = np.full((KINDS, ACTIONS), 0.9)
WRONG_LOGGING = LOGGING[:, ::-1]


@pytest.mark.parametrize(
    "estimate",
    [of_log(ips), of_log(snips), with_model(CHANCE), with_model(WRONG_MODEL), with_model(CHANCE, WRONG_LOGGING)],
    ids=["ips", "snips", "dr", "dr with a wrong model", "dr with wrong propensities"],
)
def test_estimates_are_centred_on_the_truth_and_their_intervals_hold_it(estimate: Callable[[int], Estimate]) -> None:
    """The doubly robust one survives a wrong model or wrong propensities, not both."""
    found = [estimate(seed) for seed in range(REPEATS)]
    values = np.array([one.value for one in found])
    assert values.mean() == pytest.approx(TRUTH, abs=4 * values.std() / np.sqrt(REPEATS))
    assert np.mean([one.standard_error for one in found]) == pytest.approx(values.std(), rel=0.15)
    covered = np.mean([one.low <= TRUTH <= one.high for one in found])
    assert 0.91 <= covered <= 0.985


def test_wrong_propensities_and_a_wrong_model_are_off() -> None:
    values = [with_model(WRONG_MODEL, WRONG_LOGGING)(seed).value for seed in range(50)]
    assert abs(np.mean(values) - TRUTH) > 4 * np.std(values) / np.sqrt(50)


def test_a_good_model_narrows_the_interval() -> None:
    spread = {name: np.std([estimate(seed).value for seed in range(100)])
              for name, estimate in (("ips", of_log(ips)), ("snips", of_log(snips)), ("dr", with_model(CHANCE)))}
    assert spread["dr"] < spread["ips"]
    assert spread["snips"] < spread["ips"]


def test_the_policy_that_ran_is_worth_the_mean_reward() -> None:
    logged, _, _ = drawn(1)
    own = Logged(logged.reward, logged.logging, logged.logging)
    for found in (ips(own), snips(own)):
        assert found.value == pytest.approx(own.reward.mean())
        assert found.standard_error == pytest.approx(own.reward.std(ddof=1) / np.sqrt(ROWS))
        assert found.effective_rows == pytest.approx(ROWS)


def test_rows_of_one_group_count_as_one() -> None:
    """Every row twice over, in groups of two, says no more than once."""
    logged, _, _ = drawn(2)
    reward, logging, target = (np.repeat(part, 2) for part in (logged.reward, logged.logging, logged.target))
    twice = Logged(reward, logging, target, group=np.repeat(np.arange(ROWS), 2))
    for estimator in (ips, snips):
        assert estimator(twice).standard_error == pytest.approx(estimator(logged).standard_error)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.05, 1), st.floats(0.01, 1)), min_size=2, max_size=30),
       st.floats(-2, 2), st.floats(0.1, 3))
def test_snips_follows_a_shift_and_a_scale_of_the_rewards(
    rows: list[tuple[bool, float, float]], shift: float, scale: float
) -> None:
    reward, logging, target = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    one, other = snips(Logged(reward, logging, target)), snips(Logged(scale * reward + shift, logging, target))
    assert other.value == pytest.approx(scale * one.value + shift, abs=1e-9)
    assert other.standard_error == pytest.approx(scale * one.standard_error, abs=1e-9)


@pytest.mark.parametrize(
    ("reward", "logging", "target", "sentence"),
    [
        ([1.0], [0.0], [0.5], "logging probability 0"),
        ([1.0], [1.5], [0.5], "must lie in"),
        ([1.0], [0.5], [-0.5], "must lie in"),
        ([1.0], [0.5], [np.nan], "must lie in"),
        ([1.0, 0.0], [0.5], [0.5], "equally long"),
        ([], [], [], "not empty"),
    ],
)
def test_impossible_logs_are_refused(reward: list, logging: list, target: list, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Logged(np.array(reward), np.array(logging), np.array(target))


def test_what_cannot_be_estimated_is_refused() -> None:
    ones = np.ones(3)
    with pytest.raises(DataError, match="never shows"):
        snips(Logged(ones, ones, np.zeros(3)))
    with pytest.raises(DataError, match="independent groups"):
        ips(Logged(ones, ones, ones, group=np.zeros(3)))
    with pytest.raises(DataError, match="guesses of shapes"):
        doubly_robust(Logged(ones, ones, ones), ones, np.ones(2))
