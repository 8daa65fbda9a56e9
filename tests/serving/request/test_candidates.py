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
