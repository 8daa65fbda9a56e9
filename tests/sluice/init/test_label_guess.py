from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import DataError
from sluice.init.column_types import Column
from sluice.init.label_guess import guess_label


def column(name: str, values: list[Any], kind: Any = "integer") -> Column:
    return Column(name, name, kind, values)


NUMBERS = column("size", list(range(20)))
TWO, OTHER = column("flag", [0, 1] * 10), column("switch", [1, 0] * 10)


@pytest.mark.parametrize(
    ("columns", "expression"),
    [
        ([NUMBERS, column("clicked", [0, 1] * 10), TWO], "clicked = 1"),
        ([TWO, NUMBERS, column("y", ["no", "no", "no", "yes"] * 5, "text"), OTHER, NUMBERS], "y = 'yes'"),
        ([NUMBERS, column("income", ["<=50K", "<=50K", ">50K", "<=50K"] * 5, "text")], "income = '>50K'"),
        ([NUMBERS, column("label", [-1, 1] * 10)], "label = 1"),
        ([NUMBERS, column("target", [1, 2] * 10)], "target = 1"),
        ([column("bought", [True, False] * 10, "boolean"), NUMBERS], "bought"),
        ([NUMBERS, TWO, NUMBERS], "flag = 1"),
        ([NUMBERS, TWO, NUMBERS, OTHER], "switch = 1"),
        ([TWO, NUMBERS, OTHER, NUMBERS], "flag = 1"),
        ([NUMBERS, column("rating", [1, 2, 3, 4, 5] * 4), TWO], "rating >= 4"),
        ([NUMBERS, column("stars", [0.5, 1.0, 2.5, 5.0] * 5, "number")], "stars >= 5"),
        ([column("ACTION", [0, 1] * 10), NUMBERS, column("rating", [1, 2, 3, 4, 5] * 4)], "ACTION = 1"),
        ([column("Action", [0, 1] * 10), column("Comedy", [1, 0] * 10), column("rating", [1, 2, 3, 4, 5] * 4)],
         "rating >= 4"),
    ],
)
def test_labels_are_told_by_name_then_place_then_being_alone(columns: list[Column], expression: str) -> None:
    assert guess_label(columns, None).expression == expression


def test_columns_that_might_be_it_as_well_are_named() -> None:
    assert "so has switch: --label NAME takes another" in guess_label([TWO, NUMBERS, OTHER, NUMBERS], None).why
    user, item = column("user", [1, 2] * 10), column("item", list(range(20)))
    found = guess_label([user, item, column("ok", [True, False] * 10, "boolean")], None, (user, item))
    assert found.expression is None
    assert "--label ok takes" in found.why


def test_the_rate_is_that_of_the_positive() -> None:
    assert guess_label([NUMBERS, column("y", [1, 0, 0, 0])], None).rate == 0.25


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([NUMBERS, column("shop", [1, 2, 3])], "there is no label"),
        ([NUMBERS, TWO, OTHER, NUMBERS], "several columns have two values"),
        ([NUMBERS, TWO, OTHER, NUMBERS], "as in --label switch"),
        ([NUMBERS, column("y", [1, 0, None, None]), column("shop", [1, 2, 3, 4])],
         "y is named like a label and has two values, 2 rows .*: such rows are neither .* NOT NULL AND y = 1"),
        ([NUMBERS, TWO, column("y", [1, 2, 3, 4, 5] * 4)], "y is named like a label and has 5 values"),
    ],
)
def test_without_a_label_the_sentence_says_how_to_name_one(columns: list[Column], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as error:
        guess_label(columns, None)
    assert "--label" in str(error.value)


def test_a_log_of_what_users_took_is_not_made_of_a_label_that_is_missing_now_and_then() -> None:
    user, item = column("user", [1, 2] * 10), column("item", list(range(20)))
    with pytest.raises(DataError, match="clicked is named like a label and has two values, 1 row"):
        guess_label([user, item, column("clicked", [0, 1] * 9 + [0, None])], None, (user, item))


@pytest.mark.parametrize(
    ("told", "expression"),
    [
        (column("clicks", [0, 0, 1, 2] * 50), "clicks > 0"),
        (column("rating", list(range(0, 100, 5)) * 10), "rating >= 75"),
        (column("user_rating", [1, 2, 3, 4, 5, 5, 4, 3, 2, None] + [1, 2, 3, 4, 5] * 40), "user_rating >= 4"),
        (column("stars", [one / 10 for one in range(5, 51)] * 4, "number"), "stars >= 3.9"),
        (column("avg_rating", list(range(0, 100, 5)) * 10), None),  # the item's, not the user's
    ],
)
def test_counts_and_ratings_of_many_values_are_no_positives_alone(told: Column, expression: str | None) -> None:
    rows = len(told.values)
    user, item = column("user", [row % 7 for row in range(rows)]), column("item", [row % 11 for row in range(rows)])
    found = guess_label([user, item, told], None, (user, item))
    assert found.expression == expression
    assert found.columns == (frozenset({told.plain}) if expression else frozenset())


@pytest.mark.parametrize("name", ["score", "class", "income", "clicks"])
def test_what_is_always_the_same_of_an_item_is_no_label_of_takes(name: str) -> None:
    items = [row % 37 for row in range(800)]
    user, item = column("user", [row * 7919 % 101 for row in range(800)]), column("item", items)
    assert guess_label([user, item, column(name, [item % 13 for item in items])], None, (user, item)).positives_alone


def test_takes_that_are_rated_now_and_then_are_all_positive() -> None:
    user, item = column("user", [row % 7 for row in range(100)]), column("item", [row % 11 for row in range(100)])
    rating = column("rating", [1 + row % 5 if row % 10 == 0 else None for row in range(100)])
    assert guess_label([user, item, rating], None, (user, item)).positives_alone


def test_a_rating_that_many_rows_are_without_is_refused_with_what_to_say() -> None:
    user, item = column("user", [1, 2] * 50), column("item", list(range(100)))
    with pytest.raises(DataError, match=r"no value, 20 rows .* --label \"rating IS NOT NULL AND rating >= 4"):
        guess_label([user, item, column("rating", [1, 2, 4, 5, None] * 20)], None, (user, item))


def test_a_label_of_one_class_is_refused_beside_users_and_items_unless_it_says_yes() -> None:
    user, item = column("user", [1, 2] * 10), column("item", list(range(20)))
    with pytest.raises(DataError, match=r"click is named like a label and is '0' in every sampled row .*; bring rows"):
        guess_label([user, item, column("click", [0] * 20)], None, (user, item))
    found = guess_label([user, item, column("click", [1] * 20)], None, (user, item))  # a log of clicks
    assert found.expression is None
    assert "of two values (there is click)" in found.why


@pytest.mark.parametrize(
    ("wanted", "expression"), [("flag", "flag = 1"), ("size", "size >= 15"), ("size % 2 = 0", "size % 2 = 0")]
)
def test_an_asked_label_is_taken(wanted: str, expression: str) -> None:
    found = guess_label([NUMBERS, TWO], wanted)
    assert found.expression == expression
    assert found.columns == {wanted.split()[0]}


@pytest.mark.parametrize("wanted", ["stars", "stars >= 4"])
def test_an_asked_label_that_rows_do_not_tell_says_what_becomes_of_them(wanted: str) -> None:
    def asked(without: int) -> str:
        return guess_label([column("stars", [1, 2, 3, 4, 5] * 200 + [None] * without)], wanted).why

    assert "quarantine" not in asked(0)
    assert "5 rows (0.50%) without one: they go to quarantine" in asked(5)
    with pytest.raises(DataError, match=r"50 rows .* 1% of its rows .*--label \"stars IS NOT NULL AND stars >= 4\""):
        asked(50)


@pytest.mark.parametrize(("wanted", "sentence"), [("colour > 1", "is no column"), ("word", "give an expression")])
def test_an_asked_label_that_is_none_is_refused(wanted: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        guess_label([NUMBERS, column("word", ["a", "b", "c"], "text")], wanted)
