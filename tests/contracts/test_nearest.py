"""The nearest word, or none."""

from __future__ import annotations

from contracts.nearest import Hints, did_you_mean


def test_a_misspelt_word_finds_its_neighbour():
    assert did_you_mean("windws", ["windows", "fields"]) == "; did you mean 'windows'?"


def test_nothing_near_says_nothing():
    assert did_you_mean("zzz", ["windows", "fields"]) == ""
    assert did_you_mean("zzz", []) == ""


def test_the_order_of_the_known_words_does_not_matter():
    assert did_you_mean("ab", ["abc", "abd"]) == did_you_mean("ab", ["abd", "abc"])


def test_long_words_are_not_compared() -> None:
    assert did_you_mean("windows" * 20, ["windows" * 20 + "x"]) == ""
    assert did_you_mean("windws", ["windows", "windws" * 1_000_000]) == "; did you mean 'windows'?"


def test_hints_are_of_the_first_words_alone():
    hints = Hints(most=2)
    assert [hints("prise", ["price"]) for _ in range(3)] == ["; did you mean 'price'?"] * 2 + [""]
