from __future__ import annotations

import numpy as np

from models.retrieval.quotas import choose

FAR = 100


def places_of(near: range) -> np.ndarray:
    """Forty targets, of which those of `near` are found first of all."""
    return np.array([0 if target in near else FAR for target in range(40)])


def test_who_finds_what_others_miss_gets_a_quota() -> None:
    chosen = choose({"a": places_of(range(20)), "b": places_of(range(10)), "c": places_of(range(20, 40))}, 20)
    assert sum(chosen.values()) == 20
    assert min(chosen["a"], chosen["c"]) >= 1


def test_a_fixed_quota_stays_and_is_no_more_than_there_is() -> None:
    found = {"a": places_of(range(20)), "b": places_of(range(20, 40))}
    assert choose(found, 20, {"b": 5}) == {"a": 15, "b": 5}
    assert choose(found, 20, {"b": 50}) == {"a": 0, "b": 20}


def test_nobody_alone_finds_more_than_the_mix() -> None:
    draw = np.random.default_rng(3)
    found = {name: draw.integers(0, 200, 300) // spread for name, spread in {"a": 1, "b": 3, "c": 2}.items()}
    for candidates in (20, 50, 100):
        chosen = choose(found, candidates)
        hit = np.any([found[name] < quota for name, quota in chosen.items()], axis=0)
        assert sum(chosen.values()) == candidates
        assert hit.sum() >= max((places < candidates).sum() for places in found.values())
