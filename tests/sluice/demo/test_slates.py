"""Slate arithmetic against brute force on small markets."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.demo import slates
from sluice.demo.slates import Market


def market(seed: int, items: int = 6, reserve: float = 0.0, length: int = 2) -> Market:
    rng = np.random.default_rng(seed)
    allowed = rng.random(items) < 0.8
    allowed[:2] = True
    return Market(rng.random(items), rng.random(items) + 0.1, allowed, reserve, length)


@given(st.integers(0, 10_000), st.sampled_from(slates.KINDS), st.sampled_from([0.0, 300.0]))
@settings(max_examples=50, deadline=None)
def test_no_allowed_slate_is_worth_more_than_the_oracles(seed, kind, reserve):
    world = market(seed, reserve=reserve)
    eligible = [
        row for row in np.flatnonzero(world.allowed)
        if kind == "clicks" or world.probability[row] * world.bids[row] * 1000 >= reserve
    ]  # fmt: skip
    length = min(world.length, len(eligible))
    best = max((world.total(kind, np.array(rows)) for rows in permutations(eligible, length)), default=0.0)
    assert world.total(kind, world.best(kind)) == pytest.approx(best)


def test_the_oracle_itself_has_share_one_and_an_empty_slate_zero():
    worlds = [market(seed) for seed in range(5)]
    for kind in slates.KINDS:
        oracle = [world.best(kind) for world in worlds]
        empty = [np.array([], dtype=int)] * 5
        assert slates.shares(worlds, {"oracle": oracle, "empty": empty}, kind) == {
            "oracle": pytest.approx(1.0),
            "empty": 0.0,
        }


def test_losses_add_up_to_what_the_final_slate_lacks():
    worlds = [market(seed, items=20, length=3) for seed in range(10)]
    rng = np.random.default_rng(1)
    traces = []
    for world in worlds:
        kept = np.flatnonzero(world.allowed)
        retrieved = rng.permutation(kept)[:10]
        order = rng.permutation(retrieved[:6])
        traces.append({"retrieve": retrieved, "prerank": retrieved[:6], "rank": order, "rerank": order[:3]})
    lost = slates.losses(worlds, traces)
    final = slates.shares(worlds, {"funnel": [trace["rerank"] for trace in traces]}, "value")["funnel"]
    assert sum(dict(lost).values()) == pytest.approx(1.0 - final)
    assert min(lost.retrieve, lost.prerank, lost.rank) >= 0.0


def test_trivial_policies_keep_to_allowed_items():
    worlds = [market(seed, items=30, length=5) for seed in range(5)]
    order = np.random.default_rng(0).permutation(30)
    for chosen in (slates.random_slates(worlds, 3), slates.popularity_slates(worlds, order)):
        for world, rows in zip(worlds, chosen, strict=True):
            assert world.allowed[rows].all()
            assert len(set(rows.tolist())) == 5
