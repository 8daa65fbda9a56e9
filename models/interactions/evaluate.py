"""A retrieval model asked for all users of a holdout: figures by full ranking, as a whole and by slices.

Slices: `popularity` (the items that make the first, second, last third of the training actions, and those without
any), `history` (actions known when asked), `age` (of the item: time since its first known action; logs with times).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import torch

from contracts.features.feature_spec import FIRST_ID
from models.evaluation import full_ranking
from models.evaluation.full_ranking import Ranked, RankingFigures, Slices
from models.interactions.interactions import Interactions
from models.interactions.retriever import Retriever
from models.interactions.splits import Holdout

BLOCK = 256  # users whose scores are there at once
LIST = 100
HISTORY = (0, 1, 5, 10, 20, 50)
DAY = 24 * 3600 * 1_000_000
AGES = {"new": -np.inf, "below a day": 0, "1 to 7 days": DAY, "7 to 30 days": 7 * DAY, "above": 30 * DAY}


@torch.inference_mode()
def evaluate(model: Retriever, holdout: Holdout, counts: np.ndarray, *, hide_seen: bool = True) -> RankingFigures:
    """`counts` [table]: training actions of each item. `hide_seen`: what the history holds is not recommended."""
    ranked = rank(model, holdout, hide_seen=hide_seen)
    targets = holdout.targets.rows(holdout.asked)
    lengths = holdout.history.lengths[holdout.asked][targets.owners]
    ages = {} if targets.times is None else {"age": age_slices(holdout.history, targets)}
    return full_ranking.figures(ranked, counts, len(counts) - FIRST_ID, {
        "popularity": popularity_slices(counts, targets.items), "history": history_slices(lengths), **ages})


@torch.inference_mode()
def rank(model: Retriever, holdout: Holdout, *, hide_seen: bool = True, lists: int = LIST) -> Ranked:
    """Ranks of all targets and, with `lists` > 0, the best items of each user that is asked."""
    parts = list(_blocks(model, holdout, hide_seen, lists))
    return Ranked(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _blocks(model: Retriever, holdout: Holdout, hide_seen: bool, lists: int) -> Iterator[Ranked]:
    asked = holdout.asked
    for start in range(0, len(asked), BLOCK):
        users = asked[start:start + BLOCK]
        history, targets = holdout.history_of(users), holdout.targets.rows(users)
        scores = model.scores(users, history)
        scores[:, :FIRST_ID] = -torch.inf
        if hide_seen:
            full_ranking.hide(scores, history.owners, history.items)
        yield Ranked(targets.owners + start, full_ranking.ranks(scores, targets.owners, targets.items),
                     full_ranking.best(scores, lists))


def popularity_slices(counts: np.ndarray, items: np.ndarray) -> Slices:
    """Of targets [T]: thirds of the actions from the most taken item down, and items without any."""
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    code = np.empty(len(counts), np.int64)
    code[order] = np.minimum(3 * before // max(counts.sum(), 1), 2)
    code[counts == 0] = 3
    return Slices(("head", "middle", "tail", "new"), code[items])


def history_slices(lengths: np.ndarray) -> Slices:
    """Of targets [T] by the actions known before: "0", "1-4" ... "50+"."""
    names = [f"{low}" if low + 1 == high else f"{low}-{high - 1}" for low, high
             in itertools.pairwise(HISTORY)]
    return Slices((*names, f"{HISTORY[-1]}+"), np.searchsorted(HISTORY, lengths, side="right") - 1)


def age_slices(known: Interactions, targets: Interactions) -> Slices:
    """Of targets [T] by the time since anybody's first known action on the item; "new" where there is none before."""
    assert known.times is not None
    assert targets.times is not None
    first = np.full(known.table, np.inf)
    np.minimum.at(first, known.items, known.times)
    return by_age(targets.times - first[targets.items])


def by_age(age: np.ndarray) -> Slices:
    """Of microseconds [T], minus infinity for what is new."""
    return Slices(tuple(AGES), np.searchsorted(list(AGES.values())[1:], age, side="right"))
