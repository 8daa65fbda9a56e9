from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.cross_search.derivation import derive


def layer(nodes: int, *edges: tuple[int, int], value: float = 0.9) -> np.ndarray:
    soft = np.full((nodes, nodes), 0.1)
    for one, other in edges:
        soft[one, other] = value
    return soft


def test_figure_2_of_the_paper() -> None:
    layers = [layer(5, (1, 2), (1, 3), (4, 2)), layer(5, (1, 4)), layer(5, (2, 3), (4, 3))]
    expected = [{1, 2}, {1, 3}, {4, 2}, {1, 2, 4}, {1, 3, 4}, {2, 3}, {4, 2, 3}]
    assert set(derive(layers, [0.5] * 3)) == {frozenset(cross) for cross in expected}


def test_a_field_joined_with_itself_adds_nothing() -> None:
    assert derive([layer(2, (0, 0))], [0.5]) == {}


def test_importance_is_the_best_way_of_coming_about() -> None:
    first = layer(3, (0, 1), value=0.8)
    first[1, 0] = 0.6
    second = layer(3, (0, 2), value=0.7)
    found = derive([first, second], [0.5, 0.5])
    assert found[frozenset({0, 1})] == pytest.approx(0.8)
    assert found[frozenset({0, 1, 2})] == pytest.approx(0.8 * 0.7)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_each_layer_has_its_own_threshold() -> None:
    layers = [layer(3, (0, 1), value=0.6), layer(3, (0, 2), value=0.6)]
    assert frozenset({0, 1, 2}) in derive(layers, [0.5, 0.5])
    assert set(derive(layers, [0.5, 0.7])) == {frozenset({0, 1})}
    assert derive(layers, [0.7, 0.7]) == {}


def test_a_senseless_pair_keeps_every_cross_out_that_holds_it() -> None:
    allowed = np.ones((3, 3), dtype=bool)
    allowed[1, 2] = allowed[2, 1] = False
    found = derive([layer(3, (0, 1), (1, 2)), layer(3, (0, 2))], [0.5, 0.5], allowed)
    assert set(found) == {frozenset({0, 1})}


def slow(layers: list[np.ndarray], threshold: float) -> set[frozenset[int]]:
    found: set[frozenset[int]] = set()
    for start in range(len(layers[0])):
        neighbours = [np.flatnonzero(one[start] > threshold).tolist() for one in layers]
        for depth in range(1, len(layers) + 1):
            if neighbours[depth - 1]:
                paths = itertools.product(*[n for n in neighbours[:depth] if n])
                found |= {frozenset({start, *path}) for path in paths}
    return {cross for cross in found if len(cross) > 1}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 5), st.integers(1, 3))
def test_all_paths_and_no_others(seed: int, nodes: int, depth: int) -> None:
    layers = list(np.random.default_rng(seed).random((depth, nodes, nodes)))
    assert set(derive(layers, [0.6] * depth)) == slow(layers, 0.6)


def test_the_limit_keeps_the_most_important() -> None:
    soft = np.random.default_rng(0).random((6, 6))
    every, some = derive([soft], [0.2]), derive([soft], [0.2], limit=2)
    assert set(some) < set(every)
    assert max(every, key=every.__getitem__) in some
