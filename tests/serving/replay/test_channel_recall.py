from __future__ import annotations

import numpy as np
import pytest

from contracts.config.stages import Retrieve
from serving.replay.channel_recall import choose, places, ranks

FAR = 100


def retrieve(**quotas: int | None) -> Retrieve:
    return Retrieve.model_validate({"candidates": 100, "channels": {name: {"quota": q} for name, q in quotas.items()}})


def places_of(near: range) -> np.ndarray:
    """Forty clicks, of which those of `near` are found first of all."""
    return np.array([0 if click in near else FAR for click in range(40)])


def test_a_channel_that_finds_what_others_miss_gets_a_quota():
    found = {"two_tower": places_of(range(20)), "item_to_item": places_of(range(10)),
             "popularity": places_of(range(0)), "sasrec": places_of(range(20, 40))}
    chosen = choose(found, retrieve(sasrec=None), 20)
    assert sum(chosen.values()) == 20
    assert min(chosen["two_tower"], chosen["sasrec"]) >= 1


def test_more_goes_to_the_channel_that_finds_deep():
    deep = np.arange(40) * 2
    found = {"two_tower": places_of(range(10)), "item_to_item": np.full(40, FAR), "popularity": np.full(40, FAR),
             "sasrec": deep}
    chosen = choose(found, retrieve(sasrec=None), 100)
    assert chosen["sasrec"] > 75
    hit = (deep < chosen["sasrec"]) | (found["two_tower"] < chosen["two_tower"])
    assert hit.all()


def test_quotas_that_are_given_stay():
    found = {name: places_of(range(40)) for name in ("two_tower", "item_to_item", "popularity", "sasrec", "hstu")}
    chosen = choose(found, retrieve(sasrec=35, hstu=None), 100)
    assert (chosen["sasrec"], sum(chosen.values())) == (35, 100)


def test_what_nobody_gains_by_is_dealt_out_evenly():
    found = {name: np.full(40, FAR) for name in ("two_tower", "item_to_item", "popularity", "sasrec")}
    assert choose(found, retrieve(sasrec=None), 100) == dict.fromkeys(found, 25)


def test_what_is_worth_more_decides():
    first, last = np.array([0, 0, 0, FAR]), np.array([FAR, FAR, FAR, 0])
    found = {"two_tower": first, "item_to_item": np.full(4, FAR), "popularity": last, "sasrec": np.full(4, FAR)}
    assert choose(found, retrieve(sasrec=None), 1)["two_tower"] == 1
    assert choose(found, retrieve(sasrec=None), 1, np.array([1, 1, 1, 5.0]))["popularity"] == 1


def test_a_channel_alone_finds_what_its_list_holds(loaded, asked):
    clicked = [request for request in asked if request.clicked >= 0]
    found = ranks(loaded, clicked)
    assert set(found) == {"two_tower", "item_to_item", "popularity"}
    everything = loaded.settings.retrieve.model_copy(update={"candidates": len(loaded.items)})
    mixed = places(loaded, clicked, everything)
    unseen = [request.clicked not in request.requester.recent for request in clicked]
    assert (mixed[unseen] < len(loaded.items)).all()
    order = np.asarray(loaded.popularity).tolist()
    seen = clicked[0].requester.recent
    place = order.index(clicked[0].clicked) - sum(order.index(row) < order.index(clicked[0].clicked) for row in seen)
    limit = loaded.settings.retrieve.candidates
    assert found["popularity"][0] == pytest.approx(min(place, limit)) or clicked[0].clicked in seen


def test_the_mix_finds_no_less_than_any_channel_alone():
    draw = np.random.default_rng(3)
    found = {name: draw.integers(0, 200, 300) // spread for name, spread in
             {"two_tower": 1, "item_to_item": 1, "popularity": 1, "sasrec": 3, "hstu": 2}.items()}
    for candidates in (20, 50, 100):
        chosen = choose(found, retrieve(sasrec=None, hstu=None), candidates)
        hit = np.any([found[name] < quota for name, quota in chosen.items()], axis=0)
        assert sum(chosen.values()) == candidates
        assert hit.sum() >= max((places < candidates).sum() for places in found.values())
