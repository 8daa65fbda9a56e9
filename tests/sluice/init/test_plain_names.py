from __future__ import annotations

from sluice.init.plain_names import plain_names, quoted, without_accents


def test_names_are_plain_and_different_from_each_other_and_from_reserved_ones() -> None:
    names = ["a.b", "a b", "A_B", "Day", "day_", "_id", "2nd", "年"]
    assert plain_names(names) == ["a_b", "a_b_", "A_B__", "Day_", "day__", "id", "c_2nd", "column"]


def test_letters_lose_their_accents() -> None:
    assert [without_accents(name) for name in ("Kündigt", "Straße")] == ["Kundigt", "Strasse"]


def test_names_that_sql_would_take_for_something_else_are_quoted() -> None:
    assert [quoted(name) for name in ("price", "list price", "a`b", "Table", "null", "order")] == [
        "price", "`list price`", "`a``b`", "`Table`", "`null`", "order"]
