from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice.init.column_types import Column
from sluice.init.field_guess import Roles, fields_of

ROWS = 600
RANDOM = np.random.default_rng(0)
TRUTH = [bool(one) for one in RANDOM.random(ROWS) < 0.3]
CODES = [int(one) for one in RANDOM.choice(90_000, 40)[RANDOM.integers(0, 40, ROWS)]]


def column(name: str, values: list[Any], kind: Any = "text", why: str = "") -> Column:
    return Column(name, name, kind, values, why=why)


def offered(one: Column, truth: list[bool] | None = None) -> tuple[dict[str, str], dict[str, str]]:
    left_out: dict[str, str] = {}
    return {field.name: field.kind for field in fields_of(one, Roles(None, None, truth), left_out)}, left_out


def test_what_is_doubtful_is_offered_as_category_and_as_quantity() -> None:
    values = [int(one) for one in RANDOM.integers(0, 90, ROWS)]
    left_out: dict[str, str] = {}
    code, value = fields_of(column("x", values, "integer"), Roles(None, None, None), left_out)
    assert (code.name, code.kind, value.name, value.kind) == ("x", "categorical", "x_value", "numeric")
    assert value.derive == "try_cast(x AS DOUBLE)"


@pytest.mark.parametrize(("values", "reason"), [
    ([str(row % 37) if true else None for row, true in enumerate(TRUTH)], "100% of the positives and 0% of the neg"),
    (["won" if true else "lost" for true in TRUTH], "copy of the label"),
    ([None if true else float(row) for row, true in enumerate(TRUTH)], "0% of the positives and 100% of the negatives"),
    ([5.0 if true and row % 3 else None for row, true in enumerate(TRUTH)], "of the positives and for none of the oth"),
])
def test_what_came_after_the_label_is_left_out(values: list[Any], reason: str) -> None:
    one = column("x", values, "number" if any(isinstance(value, float) for value in values) else "text")
    found, left_out = offered(one, TRUTH)
    assert found == {}
    assert reason in left_out["x"]
    assert offered(one)[0]  # without a label nothing tells


def test_an_outcome_that_never_comes_without_the_label_is_no_field() -> None:
    bought = [int(true and row % 3 == 0) for row, true in enumerate(TRUTH)]
    found, left_out = offered(column("purchased", bought, "integer"), TRUTH)
    assert found == {}
    assert "--label purchased takes it instead" in left_out["purchased"]
    assert offered(column("has_car", bought, "integer"), TRUTH)[0]  # not named like a label
    assert offered(column("default", [row % 2 for row in range(ROWS)], "integer"), TRUTH)[0]  # goes with both


def test_holes_that_only_lean_to_one_label_stay() -> None:
    assert offered(column("x", [None if true and row % 2 else "a" for row, true in enumerate(TRUTH)]), TRUTH)[0]


def test_postal_codes_are_groups_too() -> None:
    zips = [f"{number:05d}" for number in RANDOM.integers(0, 99_999, 300)[RANDOM.integers(0, 300, ROWS)]]
    assert offered(column("zip_code", zips))[0] == {"zip_code": "categorical", "zip_code_area": "categorical"}


def test_an_index_of_a_data_frame_and_unnamed_identifiers_are_none() -> None:
    shuffled = [int(one) for one in RANDOM.permutation(ROWS)]
    assert "data frames" in offered(column("c0", shuffled, "integer"))[1]["c0"]
    hashes = [int(one) for one in RANDOM.integers(10**14, 10**15, ROWS)]
    assert "an identifier" in offered(column("x", hashes, "integer"))[1]["x"]


def test_what_the_few_keys_of_a_joined_table_have_is_no_sign_of_the_label() -> None:
    truth = [row % 20 == 0 for row in range(ROWS * 20)]
    values = ["a" if row % 40 == 1 else None for row in range(ROWS * 20)]
    left_out: dict[str, str] = {}
    assert fields_of(column("x", values), Roles(None, None, truth), left_out, "item")
    assert fields_of(column("x", values), Roles(None, None, truth), left_out) == []


@pytest.mark.parametrize(("every", "side", "why"), [
    (50, "item", "each item has one, 12 rows (2.00%) without one"), (0, "item", "each item has one"),
    (3, "context", "values"),
])
def test_a_value_that_is_missing_now_and_then_is_the_items_all_the_same(every: int, side: str, why: str) -> None:
    items = column("item_id", [f"i{row % 40}" for row in range(ROWS)])
    values = [None if every and row % every == 1 else f"s{row % 40 % 7}" for row in range(ROWS)]
    found, = fields_of(column("section", values), Roles(None, items, TRUTH), {})
    assert found.side == side
    assert found.why.endswith(why)
