from __future__ import annotations

import pytest

from pipelines.sql.calls import calls


def names(text: str) -> list[str]:
    return [call.name for call in calls(text)]


@pytest.mark.parametrize(("text", "found"), [
    ("weekday(ts)", ["weekday"]),
    ("Weekday( ts ) + HOUR(ts)", ["weekday", "hour"]),
    ("if(a IN (1, 2) AND (b OR NOT (c)), lower(t), 'x(y)')", ["if", "lower"]),
    ("CASE WHEN (a) THEN (b) ELSE coalesce(c, (d)) END", ["coalesce"]),
    ("`sum`(x)", []), ("'f(x)'", []), ("a div (b)", []), ("x BETWEEN (1) AND (2)", []),
    ("CAST(x AS DECIMAL(10, 2))", ["cast"]), ("decimal(x)", ["decimal"]),
    ("exists(s, v -> v LIKE 'a%')", ["exists"]), ("left(t, 2) || right(t, 1)", ["left", "right"]),
    ("rlike(t, 'a')", ["rlike"]), ("count(*)", ["count"]), ("", []), ("'open", []),
])
def test_names_in_the_order_in_which_they_are_written(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_arguments_are_the_text_between_the_commas_of_the_call_itself() -> None:
    text = "1 + replace('日本,ü' , f(a, b)[0], concat('(', x)) - 2"
    outer = calls(text)[0]
    assert outer.arguments == ("'日本,ü'", "f(a, b)[0]", "concat('(', x)")
    assert text[outer.start:outer.end] == "replace('日本,ü' , f(a, b)[0], concat('(', x))"


def test_a_call_without_arguments_has_none() -> None:
    assert calls("now( )")[0].arguments == ()
