from __future__ import annotations

import numpy as np

from serving.request.candidates import Candidates


def test_scores_follow_their_candidates() -> None:
    found = Candidates(np.array([5, 6, 7]), np.zeros(3, dtype=np.int8)).scored("retrieve", np.array([0.5, 0.6, 0.7]))
    taken = found.take(np.array([2, 0])).scored("rank", np.array([1.0, 2.0]))
    assert taken.rows.tolist() == [7, 5]
    assert taken.scores["retrieve"].tolist() == [0.7, 0.5]
    assert list(found.scores) == ["retrieve"]
    assert len(taken) == 2


def test_the_first_are_the_head_of_the_order() -> None:
    found = Candidates(np.array([5, 6, 7]), np.zeros(3, dtype=np.int8), {"retrieve": np.array([0.5, 0.6, 0.7])})
    assert found.first(2).rows.tolist() == [5, 6]
    assert found.first(2).scores["retrieve"].tolist() == [0.5, 0.6]
    assert found.first(9).rows.tolist() == [5, 6, 7]
