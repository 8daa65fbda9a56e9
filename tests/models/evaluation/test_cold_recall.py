"""Towers with a known answer: a requester's vector is the group that the hour says, an item's is its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from models.evaluation import cold_recall
from models.evaluation.cold_recall import LEAST
from models.evaluation.popularity_order import popularity_order
from models.evaluation.retrieval_recall import Catalogue
from models.examples.batches import ExampleSet
from models.examples.nobody import Nobody
from tests.models.conftest import GROUPS, ITEMS


class HourTower:
    """As TwoTower, for who reads it."""

    def item_ids(self, candidate):
        return candidate.ids[:, 0].long()

    def user_vector(self, request):
        assert (request.ids[:, 0] == 1).all()
        return torch.eye(GROUPS)[(6 * request.dense[:, 0] + 12).round().long()]  # as the spec scales it


def measured(*asked: Any) -> Any:
    return cold_recall.cold_recall(*asked)


@pytest.fixture
def catalogue() -> Catalogue:
    ids = torch.arange(2, ITEMS + 2)
    return Catalogue(ids, torch.eye(GROUPS)[ids % GROUPS] + 0.001 * torch.arange(ITEMS)[:, None], torch.ones(ITEMS))


def windows(columns, write, spec, folder, by_hour: bool, new_users: int = 0) -> list[ExampleSet]:
    sets = []
    for number, name in enumerate(("train", "validation")):
        drawn, random = columns(spec, 3000, number), np.random.default_rng(number)
        drawn["_label"] = np.ones(3000) if by_hour else (random.random(3000) < drawn["item"] / 40).astype(float)
        if by_hour:
            drawn["hour"] = (drawn["item"] % GROUPS).astype(float)
        if name == "validation":
            drawn["_user"][:new_users] = 10**6 + np.arange(new_users)
        sets.append(ExampleSet(write(Path(folder / name), drawn), spec))
    return sets


def test_the_tower_is_better_where_the_context_says_what_is_clicked(columns, write, spec, tmp_path, catalogue):
    train, validation = windows(columns, write, spec, tmp_path, by_hour=True)
    found = measured(HourTower(), catalogue, train, validation, Nobody.of(spec), 10, 10)
    assert (found.clicks, found.new_users, found.k, found.better) == (1000, False, 3, "two_tower")
    clicked, hour = validation.column("item")[:1000], validation.column("hour")[:1000]
    scores = catalogue.vectors.numpy() @ np.eye(GROUPS)[hour.astype(int)].T
    best = np.argsort(-scores, axis=0)[:3].T + 2
    assert found.two_tower == pytest.approx(np.mean([item in top for item, top in zip(clicked, best, strict=True)]))
    assert found.two_tower > found.popularity + 0.1


def test_popularity_is_better_where_the_context_says_nothing_and_fills_what_the_tower_leaves(
    columns, write, spec, tmp_path, catalogue
):
    train, validation = windows(columns, write, spec, tmp_path, by_hour=False)
    tower: Any = HourTower()
    tower.user_vector = lambda request: torch.eye(GROUPS)[torch.zeros(len(request.ids), dtype=torch.int64)]
    found = measured(tower, catalogue, train, validation, Nobody.of(spec), 3, 1)
    item, label = train.column("item"), train.column("_label")
    shown, clicks = (np.bincount(item, weights=weights, minlength=ITEMS + 2)[2:].astype(float)
                     for weights in (np.ones(len(item)), label))
    order = popularity_order(shown, clicks) + 2
    clicked = validation.column("item")[validation.column("_label") > 0][:1000]
    nearest = int(catalogue.vectors[:, 0].argmax()) + 2
    mixed = [nearest, *[one for one in order if one != nearest][:2]]
    assert found.popularity == pytest.approx(np.isin(clicked, order[:3]).mean())
    assert found.two_tower == pytest.approx(np.isin(clicked, mixed).mean())
    assert found.better == "popularity"


def test_new_users_are_asked_for_alone_where_there_are_enough(columns, write, spec, tmp_path, catalogue):
    for new, clicks in ((LEAST, LEAST), (LEAST - 1, 1000)):
        folder = tmp_path / str(new)
        train, validation = windows(columns, write, spec, folder, by_hour=True, new_users=new)
        found = measured(HourTower(), catalogue, train, validation, Nobody.of(spec), 10, 10)
        assert (found.clicks, found.new_users) == (clicks, new == LEAST)


def test_a_window_without_known_clicks_says_nothing(columns, write, spec, tmp_path, catalogue):
    train, validation = windows(columns, write, spec, tmp_path, by_hour=True)
    none = SimpleNamespace(column=lambda name: validation.column(name) * 0, batches=validation.batches)
    assert measured(HourTower(), catalogue, train, none, Nobody.of(spec), 10, 10) is None
