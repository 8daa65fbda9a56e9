from __future__ import annotations

from pipelines.sql.checked import KNOWN
from pipelines.sql.differences import REFUSED, REWRITTEN, REWRITTEN_OF_NESTED
from pipelines.sql.functions import EQUAL
from pipelines.sql.syntax import SYNTAX


def test_a_function_is_either_rewritten_or_refused() -> None:
    assert {*REWRITTEN, *REWRITTEN_OF_NESTED}.isdisjoint(REFUSED)
    assert REWRITTEN.keys().isdisjoint(REWRITTEN_OF_NESTED)
    assert KNOWN & REFUSED.keys() == {"decode"}  # of two arguments it is equal


def test_every_rewritten_function_is_compared() -> None:
    assert {*REWRITTEN, *REWRITTEN_OF_NESTED} <= EQUAL.keys() | SYNTAX.keys()


def test_a_refusal_says_what_differs_and_the_cure() -> None:
    assert all(differs and cure for differs, cure in REFUSED.values())


def test_a_rewrite_of_another_number_of_arguments_is_none() -> None:
    assert all(rewrite(["a", "b", "c", "d"]) is None for rewrite in REWRITTEN.values())
