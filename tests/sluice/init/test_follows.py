from __future__ import annotations

from typing import Any

import pytest

from sluice.init.column_types import Column
from sluice.init.follows import REPEATS, follows

USERS = [row % 10 for row in range(20 + REPEATS)]


def column(values: list[Any]) -> Column:
    return Column("x", "x", "integer", values)


@pytest.mark.parametrize(
    ("values", "own"),
    [
        ([user * 3 for user in USERS], True),
        ([user * 3 if user else None for user in USERS], True),  # missing now and then
        ([user * 3 for user in USERS[:-1]] + [1], False),
        (list(range(len(USERS))), False),
    ],
)
def test_what_repeated_keys_always_show_is_theirs(values: list[Any], own: bool) -> None:
    assert follows(column(values), column(USERS)) is own


def test_keys_that_hardly_repeat_prove_nothing() -> None:
    keys = [*range(40), *range(REPEATS - 1)]
    assert not follows(column(keys), column(keys))
