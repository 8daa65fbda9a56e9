"""Connections that come next make up for what some workers have fewer."""

from __future__ import annotations

from collections import Counter

import pytest

from serving.workers.levelling import MOST_AHEAD, levelling, ordered


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


def test_a_difference_beyond_one_order_is_made_up_for_by_further_ones() -> None:
    """The next order is another one though it names the same workers, as those that were told of must be dealt anew."""
    connections, told = {"a": 0, "b": 300}, list[object]()
    while (order := ordered(connections)).first:
        assert order not in told
        told.append(order)
        connections["a"] += len(order.first)
    assert connections == {"a": 300, "b": 300}


def test_of_many_workers_one_order_names_each_that_is_behind_twice() -> None:
    connections = dict.fromkeys(range(99), 7) | {99: 9}
    assert Counter(ordered(connections).first) == dict.fromkeys(range(99), 2)
