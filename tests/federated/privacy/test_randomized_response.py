from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.privacy.index_policy import POLICIES
from federated.privacy.randomized_response import FirstAnswers, round_answers

ROWS = 40_000
HELD = np.arange(ROWS) < ROWS // 2
EVERY = np.arange(ROWS)


@pytest.mark.parametrize("name", ["cpp1", "cpp2", "cpp3", "cpp4", "cpp5"])
def test_shares_sent_are_p5_and_p6(tmp_path, name):
    """Within 5 standard deviations over 20 thousand rows of each state."""
    policy = POLICIES[name]
    sent = round_answers(FirstAnswers(tmp_path, ROWS).answers(EVERY, HELD, policy), policy)
    for state, expected in ((HELD, policy.p5), (~HELD, policy.p6)):
        spread = np.sqrt(expected * (1 - expected) / state.sum())
        assert abs(sent[state].mean() - expected) <= 5 * spread


def test_the_first_answer_outlives_the_process_and_a_change_of_the_data(tmp_path):
    policy = POLICIES["cpp3"]
    first = FirstAnswers(tmp_path, ROWS).answers(EVERY[:999], HELD, policy)
    again = FirstAnswers(tmp_path, ROWS).answers(EVERY[:999], ~HELD, policy)
    assert (first == again).all()


def test_rows_asked_later_answer_by_the_state_of_that_day(tmp_path):
    policy = POLICIES["cpp1"]
    FirstAnswers(tmp_path, ROWS).answers(EVERY[:10], HELD, policy)
    later = FirstAnswers(tmp_path, ROWS).answers(EVERY, ~HELD, policy)
    assert later[:10].all()
    assert (later[10:] == ~HELD[10:]).all()


def test_two_clients_answer_independently(tmp_path):
    policy = POLICIES["cpp4"]
    a, b = (FirstAnswers(tmp_path / name, ROWS).answers(EVERY, HELD, policy) for name in "ab")
    both = (a & b)[HELD].mean()
    assert both == pytest.approx(policy.p1**2, abs=0.02)


def test_fresh_answers_differ_from_round_to_round(tmp_path):
    policy = POLICIES["cpp4"]
    permanent = FirstAnswers(tmp_path, ROWS).answers(EVERY, HELD, policy)
    assert (round_answers(permanent, policy) != round_answers(permanent, policy)).any()


def test_a_damaged_secret_or_memory_is_refused(tmp_path):
    FirstAnswers(tmp_path, ROWS).answers(EVERY, HELD, POLICIES["cpp2"])
    with pytest.raises(ProtocolError, match="the model has 7"):
        FirstAnswers(tmp_path, 7)
    (tmp_path / "secret").write_bytes(b"short")
    with pytest.raises(ProtocolError, match="restore it"):
        FirstAnswers(tmp_path, ROWS)
