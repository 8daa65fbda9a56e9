from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serving.replay.shown_items import shown_items
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.request_features import RequestFeatures
from serving.stages.rank import RankStage

SLOTS = 3


@pytest.fixture(scope="module")
def everything(loaded):
    """A bundle whose channels hold all items."""
    whole = loaded.settings.retrieve.model_copy(update={"candidates": len(loaded.items)})
    return replace(loaded, settings=loaded.settings.model_copy(update={"retrieve": whole}))


def test_both_orders_are_worth_a_half(everything, asked):
    found = shown_items(everything, asked, SLOTS)
    assert len(found.worth) == 2 * SLOTS * len(asked)
    assert (found.worth > 0).all()
    assert found.worth[: SLOTS * len(asked)].sum() == pytest.approx(0.5)
    assert found.worth.sum() == pytest.approx(1)


def test_what_is_shown_is_the_best_of_all_that_was_not_taken(everything, asked):
    found = shown_items(everything, asked[:5], SLOTS)
    order, rank = np.asarray(everything.popularity), RankStage(everything, RequestFeatures(everything))
    for by_value in (True, False):
        for number, request in enumerate(asked[:5]):
            open_items = order[~np.isin(order, request.requester.recent)]
            pool = Candidates(open_items, np.zeros(len(open_items), dtype=np.int8))
            best = rank.run(pool, request.requester, by_value, SLOTS, Deadline(None)).candidates.rows[:SLOTS]
            start = (number + (0 if by_value else 5)) * SLOTS
            places = found.places["popularity"][start : start + SLOTS]
            assert open_items[places].tolist() == best.tolist()


def test_what_no_place_is_left_for_is_missed(loaded, asked):
    few = loaded.settings.retrieve.model_copy(update={"candidates": 5})
    short = replace(loaded, settings=loaded.settings.model_copy(update={"retrieve": few}))
    found = shown_items(short, asked, SLOTS)
    best = np.min(list(found.places.values()), axis=0)
    assert (best < 5).all()
    assert all(((places >= 0) & (places <= 5)).all() for places in found.places.values())
