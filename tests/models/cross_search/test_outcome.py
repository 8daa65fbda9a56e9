from __future__ import annotations

import numpy as np

from contracts.summaries.crosses import SearchEpoch
from models.cross_search.outcome import SearchOutcome
from models.cross_search.pruning import Selected
from tests.models.crossed_world import crossed_columns


def test_crosses_are_named_by_their_columns_whatever_the_order_of_their_parts() -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), rows=50)
    late, early = frozenset({4, 0, 2}), frozenset({1, 3})
    outcome = SearchOutcome(
        columns=columns, folds=[], allowed=np.zeros((6, 6), dtype=bool), adjacency=[],
        proposals={late: 0.25, early: 1.0},
        selected=[Selected(late, gain=7.12345, ridge=5.0, support=9), Selected(early, gain=3.0, ridge=5.0, support=4)],
        min_count=2, representation="product", rows_per_second=1.0, seconds={},
        history=(SearchEpoch(epoch=1, fit_loss=0.5, holdout_loss=0.5, seconds=0.1),),
    )
    first, second = outcome.found()
    assert (first.name, first.parts) == ("f0_x_f2_x_f4", ("f0", "f2", "f4"))
    assert (first.importance, first.gain, first.support) == (0.25, 7.123, 9)
    assert (second.parts, second.min_count, second.representation) == (("f1", "f3"), 2, "product")
