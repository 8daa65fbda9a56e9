from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.privacy.index_policy import POLICIES
from federated.privacy.privacy_cost import any_rounds
from federated.privacy.randomized_response import FirstAnswers, round_answers

ROWS = 40_000
HELD = np.arange(ROWS) < ROWS // 2
EVERY = np.arange(ROWS)
NAMES = EVERY.astype(np.uint64) * np.uint64(2**40 + 9)


@pytest.mark.parametrize("name", ["cpp1", "cpp2", "cpp3", "cpp4", "cpp5"])
def test_shares_sent_are_p5_and_p6(tmp_path, name):
    """Within 5 standard deviations over 20 thousand rows of each state."""
    policy = POLICIES[name]
    sent = round_answers(FirstAnswers(tmp_path, NAMES).answers(EVERY, HELD, policy), policy)
    for state, expected in ((HELD, policy.p5), (~HELD, policy.p6)):
        spread = np.sqrt(expected * (1 - expected) / state.sum())
        assert abs(sent[state].mean() - expected) <= 5 * spread


def test_the_first_answer_outlives_the_process_and_a_change_of_the_data(tmp_path):
    policy = POLICIES["cpp3"]
    first = FirstAnswers(tmp_path, NAMES).answers(EVERY[:999], HELD, policy)
    again = FirstAnswers(tmp_path, NAMES).answers(EVERY[:999], ~HELD, policy)
    assert (first == again).all()


def test_rows_asked_later_answer_by_the_state_of_that_day(tmp_path):
    policy = POLICIES["cpp1"]
    FirstAnswers(tmp_path, NAMES).answers(EVERY[:10], HELD, policy)
    later = FirstAnswers(tmp_path, NAMES).answers(EVERY, ~HELD, policy)
    assert later[:10].all()
    assert (later[10:] == ~HELD[10:]).all()


def test_two_clients_answer_independently(tmp_path):
    policy = POLICIES["cpp4"]
    a, b = (FirstAnswers(tmp_path / name, NAMES).answers(EVERY, HELD, policy) for name in "ab")
    both = (a & b)[HELD].mean()
    assert both == pytest.approx(policy.p1**2, abs=0.02)


def test_fresh_answers_differ_from_round_to_round(tmp_path):
    policy = POLICIES["cpp4"]
    permanent = FirstAnswers(tmp_path, NAMES).answers(EVERY, HELD, policy)
    assert (round_answers(permanent, policy) != round_answers(permanent, policy)).any()


def test_a_damaged_secret_or_memory_is_refused(tmp_path):
    FirstAnswers(tmp_path, NAMES).answers(EVERY, HELD, POLICIES["cpp2"])
    (tmp_path / "first.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ProtocolError, match="cannot be read"):
        FirstAnswers(tmp_path, NAMES)
    (tmp_path / "first.safetensors").unlink()
    (tmp_path / "secret").write_bytes(b"short")
    with pytest.raises(ProtocolError, match="restore it"):
        FirstAnswers(tmp_path, NAMES)


def test_answers_belong_to_what_a_row_stands_for_and_not_to_its_place(tmp_path):
    """Another day's vocabulary has a thousand values more, and every place stands for another one."""
    policy, names = POLICIES["cpp3"], np.sort(np.random.default_rng(1).choice(2**60, 3000).astype(np.uint64))
    held = np.arange(2000) % 3 == 0
    first = FirstAnswers(tmp_path, names[1000:]).answers(np.arange(2000), held, policy)
    moved = np.random.default_rng(2).permutation(3000)
    today = FirstAnswers(tmp_path, names[moved])
    again = today.answers(np.arange(3000), np.ones(3000, dtype=bool), policy)
    assert (again[np.argsort(moved)][1000:] == first).all()


def test_repeated_answers_are_spent_once_and_levels_add_up(tmp_path):
    answers = FirstAnswers(tmp_path, NAMES)
    for name in ("cpp2", "cpp2", "cpp4"):
        answers.answers(EVERY[:50], HELD, POLICIES[name])
    spent = FirstAnswers(tmp_path, NAMES).ledger.read()
    assert spent.rows == 50
    assert spent.epsilon_per_row == pytest.approx(any_rounds(POLICIES["cpp2"]) + any_rounds(POLICIES["cpp4"]))
