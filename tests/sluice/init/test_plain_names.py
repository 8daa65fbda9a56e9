from __future__ import annotations

from sluice.init.plain_names import plain_names, without_accents


def test_names_are_plain_and_different_from_each_other_and_from_reserved_ones() -> None:
    names = ["a.b", "a b", "A_B", "Day", "day_", "_id", "2nd", "年"]
    assert plain_names(names, frozenset({"day"})) == ["a_b", "a_b_", "A_B__", "Day_", "day__", "id", "c_2nd", "column"]


def test_letters_lose_their_accents() -> None:
    assert [without_accents(name) for name in ("Kündigt", "Straße")] == ["Kundigt", "Strasse"]
