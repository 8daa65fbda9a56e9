from __future__ import annotations

import random

import pytest

from serving.histories.late_clicks import listed


@pytest.mark.parametrize(
    ("row", "clicks", "found"),
    [
        ([], [(1, True)], [False]),
        ([1], [(1, True)], [True]),
        ([1], [(1, True), (1, True)], [False, True]),  # of two clicks on one item the row has one: the older
        ([1], [(1, True), (1, False)], [False]),  # what the row has is the click that was learned in time
        ([1, 1], [(1, True), (1, False)], [True]),
        ([2, 1], [(1, True), (2, False)], [False]),  # the row's is older than what was made before the late one
        ([1, 2], [(1, True), (2, False)], [True]),
        ([2, 1, 3], [(2, False), (1, True), (3, False)], [True]),
        ([2, 3], [(2, False), (1, True), (3, False)], [False]),
        ([4, 2, 1], [(2, True), (9, False), (1, True)], [True, True]),  # what the row lacks is passed over
        ([1], [(-1, True)], [False]),
    ],
)
def test_a_late_click_is_in_the_row_where_the_order_allows_it(
    row: list[int], clicks: list[tuple[int, bool]], found: list[bool]
) -> None:
    assert listed(row, clicks) == found


@pytest.mark.parametrize("seed", range(20))
def test_of_different_items_it_is_those_that_the_row_has(seed: int) -> None:
    """Whatever else the row lists, in whichever places."""
    dice = random.Random(seed)
    made = dice.sample(range(100), 30)
    late, landed = set(dice.sample(made, 8)), set(dice.sample(made, 15))
    row = [item for item in made if item in landed or item not in late]
    own = [(item, item in late) for item in made if item in late or dice.random() < 0.5]
    assert listed(row, own) == [item in landed for item, is_late in own if is_late]
