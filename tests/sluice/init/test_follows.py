"""Columns that follow a key; rows of one sitting that agree count as few, and their hours are no field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.config.config import parse
from sluice.init.column_types import Column, typed_columns
from sluice.init.config_text import config_text
from sluice.init.follows import HOURS, REPEATS, ROWS_AN_HOUR, design_effect, follows
from sluice.init.role_guess import guess
from sluice.table_samples.table_sample import read_sample

OWNERS, EACH = 300, 20
CLOCK = {"event_hour", "event_weekday"}
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


def test_rows_of_their_own_and_labels_that_are_all_alike_are_independent() -> None:
    assert design_effect(range(50), [row % 2 == 0 for row in range(50)]) == 1.0
    assert design_effect([row // 5 for row in range(50)], [True] * 50) == 1.0
    assert design_effect([0] * 50, [row % 2 == 0 for row in range(50)]) == 1.0


@pytest.mark.parametrize("size", [2, 7])
def test_a_sitting_of_one_label_counts_as_one_row(size: int) -> None:
    sittings = [row // size for row in range(100 * size)]
    assert design_effect(sittings, [sitting % 3 == 0 for sitting in sittings]) == pytest.approx(size)


def test_labels_by_chance_lose_hardly_anything_by_sittings() -> None:
    labels = np.random.default_rng(0).random(5000) < 0.3
    assert design_effect([row // 50 for row in range(5000)], list(labels)) < 2


def sat(path: Path, alike: bool) -> Path:
    """Users who rate in one evening each, alike or by chance."""
    random = np.random.default_rng(1)
    level = random.random(OWNERS)
    lines = (f"{user},{random.integers(40)},{int(random.random() < (level[user] if alike else 0.5))},"
             f"{1_767_600_000 + 37_000 * user + 60 * row}" for user in range(OWNERS) for row in range(EACH))
    path.write_text("user_id,item_id,click,timestamp\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("alike", "rows", "fields"), [
    (True, None, False), (False, None, True), (True, 20 * EACH * HOURS * ROWS_AN_HOUR, True)])
def test_hours_are_no_field_where_they_name_users(
    alike: bool, rows: int | None, fields: bool, tmp_path: Path
) -> None:
    """A log that is long enough has independent rows of every hour all the same."""
    sample = read_sample(sat(tmp_path / "log.csv", alike))
    found = guess(typed_columns(sample), None, rows=rows)
    text = config_text("made", sample, found)
    assert ({field.name for field in parse(text).fields} >= CLOCK) is fields
    assert CLOCK.isdisjoint({field.name for field in parse(text).fields}) is not fields
    assert ("design effect" in text) is not fields
