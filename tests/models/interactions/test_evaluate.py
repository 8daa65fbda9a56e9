from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.interactions.evaluate import DAY, age_slices, evaluate, history_slices, popularity_slices, rank
from models.interactions.interactions import Interactions, from_columns, from_lists
from models.interactions.retriever import Fitted
from models.interactions.splits import Holdout, Split, leave_one_out
from models.retrieval.popularity import Popularity

TABLE = 40


class Fixed:
    """Scores that depend on the user and the item alone, drawn once."""

    def __init__(self, users: int) -> None:
        self.drawn = torch.rand(users, TABLE, generator=torch.Generator().manual_seed(1))

    def fit(self, split: Split) -> Fitted:
        return Fitted(0.0, 0.0, 0)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        return self.drawn[torch.from_numpy(users)].clone()


def world(users: int = 300) -> Holdout:
    random = np.random.default_rng(0)
    drawn = [random.permutation(np.arange(FIRST_ID, TABLE)) for _ in range(users)]
    past = [list(one[:random.integers(0, 9)]) for one in drawn]
    future = [list(one[20:20 + random.integers(0, 4)]) for one in drawn]
    return Holdout(from_lists(past, TABLE), from_lists(future, TABLE))


def by_hand(holdout: Holdout, scores: np.ndarray, user: int, k: int, hide_seen: bool) -> tuple[float, float, float]:
    """Recall, NDCG and reciprocal rank of one user, from a sorted list."""
    seen = set(holdout.history.of(user)) if hide_seen else set()
    ranked = sorted((item for item in range(FIRST_ID, TABLE) if item not in seen), key=lambda i: -scores[user, i])
    wanted = set(holdout.targets.of(user))
    places = [place for place, item in enumerate(ranked, start=1) if item in wanted]
    gain = sum(1 / np.log2(place + 1) for place in places if place <= k)
    perfect = sum(1 / np.log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
    return sum(place <= k for place in places) / len(wanted), gain / perfect, 1 / min(places)


@pytest.mark.parametrize("hide_seen", [True, False])
def test_figures_are_those_of_sorted_lists(hide_seen):
    holdout = world()
    model = Fixed(holdout.history.users)
    found = evaluate(model, holdout, np.ones(TABLE, int), hide_seen=hide_seen)
    for k in (10, 20):
        expected = np.mean([by_hand(holdout, model.drawn.numpy(), user, k, hide_seen) for user in holdout.asked], 0)
        assert [found.at[str(k)].recall, found.at[str(k)].ndcg, found.mrr] == pytest.approx(expected)
    assert (found.users, found.targets) == (len(holdout.asked), len(holdout.targets.items))


def test_seen_items_are_recommended_only_where_they_are_shown():
    holdout = world()
    model = Fixed(holdout.history.users)
    for hide_seen in (True, False):
        lists = rank(model, holdout, hide_seen=hide_seen, lists=5).lists
        repeats = sum(bool(set(row) & set(holdout.history.of(user))) for row, user
                      in zip(lists, holdout.asked, strict=True))
        assert (repeats > 0) != hide_seen


def test_slices_of_a_kind_are_all_targets():
    holdout = world()
    found = evaluate(Fixed(holdout.history.users), holdout, np.arange(TABLE))
    for parts in found.slices.values():
        assert sum(part.targets for part in parts.values()) == found.targets
    whole = sum(part.targets * part.recall_at_10 for part in found.slices["history"].values())
    assert whole == pytest.approx(sum(part.targets * part.recall_at_10 for part in found.slices["popularity"].values()))


def test_popularity_is_cut_into_thirds_of_the_actions():
    found = popularity_slices(np.array([0, 0, 6, 3, 3, 2, 2, 2, 0]), np.arange(2, 9))
    assert [found.names[code] for code in found.code] == ["head", "middle", "middle", "tail", "tail", "tail", "new"]


def test_histories_are_named_by_their_bounds():
    found = history_slices(np.array([0, 1, 4, 5, 49, 50, 900]))
    assert [found.names[code] for code in found.code] == ["0", "1-4", "1-4", "5-9", "20-49", "50+", "50+"]


def test_items_are_aged_by_what_anybody_did_before():
    """Item 0 was first taken at day 2, item 1 at day 30, item 2 never before."""
    known = from_columns(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2]), np.array([2, 9, 30, 50]) * DAY)
    targets = from_columns(np.zeros(7, int), np.array([0, 0, 0, 0, 0, 1, 2]), np.array([1, 2, 3, 9, 32, 36, 40]) * DAY)
    found = age_slices(known, targets)
    assert [found.names[code] for code in found.code] == [
        "new", "below a day", "1 to 7 days", "7 to 30 days", "above", "1 to 7 days", "new"]


def test_a_log_with_times_has_slices_by_age():
    log = from_columns(np.repeat(np.arange(4), 5), np.arange(20) % 6, np.arange(20) * DAY)
    split = leave_one_out(log)
    model = Popularity()
    model.fit(split)
    found = evaluate(model, split.test, split.train.counts())
    assert sum(part.targets for part in found.slices["age"].values()) == found.targets
