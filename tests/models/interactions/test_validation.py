from __future__ import annotations

import pytest

from models.interactions.evaluate import evaluate
from models.interactions.validation import BestEpoch, validation_ndcg
from models.retrieval.item_to_item import ItemCosine
from tests.models.interaction_world import ring_split


def test_the_state_of_the_highest_figure_is_kept_until_patience_ends():
    best: BestEpoch[str] = BestEpoch(patience=2)
    assert [best.goes_on(epoch, figure, lambda epoch=epoch: f"epoch {epoch}")  # type: ignore[misc]
            for epoch, figure in ((1, 0.1), (2, 0.3), (3, 0.3), (4, 0.2))] == [True, True, True, False]
    assert (best.state, best.epoch, best.figure) == ("epoch 2", 2, 0.3)


def test_a_figure_of_zero_is_taken_too():
    best: BestEpoch[int] = BestEpoch(patience=5)
    assert best.goes_on(1, 0.0, lambda: 7)
    assert best.state == 7


def test_with_one_target_a_user_it_is_the_ndcg_of_the_evaluation():
    split, model = ring_split(), ItemCosine()
    model.fit(split)
    whole = evaluate(model, split.validation, split.train.counts())
    assert validation_ndcg(model, split.validation) == pytest.approx(whole.at["10"].ndcg)
