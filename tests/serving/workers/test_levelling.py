"""Connections that come next make up for what some workers have fewer."""

from __future__ import annotations

from collections import Counter

import pytest

from serving.workers.levelling import MOST_AHEAD, levelling


@pytest.mark.parametrize(("connections", "following"), [
    ({}, ""), ({"a": 3}, ""), ({"a": 3, "b": 3}, ""), ({"a": 4, "b": 3}, "b"), ({"a": 1, "b": 4}, "aaa"),
    ({"a": 5, "b": 3, "c": 4}, "bbc"), ({"a": 5, "b": 3, "c": 3}, "bcbc")])
def test_whoever_has_the_fewest_is_next(connections: dict[str, int], following: str) -> None:
    assert levelling(connections) == list(following)


def test_afterwards_all_have_as_many() -> None:
    connections = {"a": 7, "b": 0, "c": 2, "d": 6}
    assert set((Counter(connections) + Counter(levelling(connections))).values()) == {7}


def test_no_more_than_so_many_are_looked_ahead() -> None:
    assert levelling({"a": 0, "b": 10 * MOST_AHEAD}) == ["a"] * MOST_AHEAD
