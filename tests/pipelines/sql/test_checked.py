from __future__ import annotations

import pytest

from contracts.errors import ConfigError
from pipelines.sql.checked import checked


def on_embedded(expression: str) -> str:
    return checked(expression, "embedded").expression


@pytest.mark.parametrize(("expression", "rewritten"), [
    ("weekday(ts)", "pmod(dayofweek(ts) + 5, 7)"),
    ("1 + WEEKDAY(date_add(d, weekday(ts)))", "1 + pmod(dayofweek(date_add(d, pmod(dayofweek(ts) + 5, 7))) + 5, 7)"),
    ("try_cast(w AS DATE)", "CAST(TRY_CAST(w AS TIMESTAMP) AS DATE)"),
    ("cast(w AS STRING)", "cast(w AS STRING)"),
    ("t RLIKE '\\\\d+' OR regexp_replace(t, '\\\\s', '') = ''",
     "t RLIKE '[0-9]+' OR regexp_replace(t, '[ \\\\t\\\\n\\\\x0B\\\\f\\\\r]', '') = ''"),
    ("hour(ts) >= 18 AND price > 0.5", "hour(ts) >= 18 AND price > 0.5D"),
])
def test_a_call_that_differs_is_rewritten_where_it_has_an_equal_form(expression: str, rewritten: str) -> None:
    assert on_embedded(expression) == rewritten


@pytest.mark.parametrize(("expression", "cure"), [
    ("ln(price)", "log = true"), ("round(x, 1)", "floor"), ("upper(initcap(t))", "lower or upper"),
    ("split(t, '')", "write a pattern"), ("slice(a, -2, 2)", "reverse"), ("extract(DOW FROM ts)", "dayofweek"),
    ("date_part('dow', ts)", "dayofweek"), ("t LIKE ANY ('a', 'b')", "OR"), ("decode(i, 0, 'a', 'b')", "CASE"),
    ("t RLIKE '(?i)a'", "write the characters out"), ("from_json(t, 'b ARRAY<INT>')", "split"),
])
def test_a_call_without_an_equal_form_is_refused_with_the_cure(expression: str, cure: str) -> None:
    with pytest.raises(ConfigError, match=r"log\.derive\.v .* or set spark\.master to local") as refused:
        checked(expression, "embedded", "log.derive.v")
    assert cure in str(refused.value)


def test_apache_spark_runs_every_expression_as_it_is() -> None:
    for expression in ("weekday(ts)", "ln(x)", "x > 0.5", "strange(x)"):
        assert checked(expression, "spark") == (expression, ())


def test_a_function_outside_the_list_runs_with_a_notice() -> None:
    found = checked("hour(ts) + my_own(x)", "embedded", "label.expression")
    assert found.expression == "hour(ts) + my_own(x)"
    assert len(found.notices) == 1
    assert "label.expression calls my_own" in found.notices[0]
    assert "--compare-engines" in found.notices[0]


def test_what_the_examples_write_has_no_notice() -> None:
    for expression in ("cast(hour(event_time) as bigint)", "cast(weekday(event_time) as bigint)", "rating >= 4",
                       "try_to_timestamp(hour, 'yyMMddHH')", "income LIKE '%.'", "`emp.var.rate`",
                       "array_compact(array(if(g1 = 1, 'Action', null), if(g2 = 1, 'Adventure', null)))"):
        assert checked(expression, "embedded").notices == ()


def test_types_say_more() -> None:
    assert checked("if(b, 1, v)", "embedded").expression == "if(b, 1, v)"
    with pytest.raises(ConfigError, match="cast them to one"):
        checked("if(b, 1, v)", "embedded", types={"b": "boolean", "v": "double"})


def test_the_least_of_lists_is_found_by_a_sort_and_that_of_numbers_as_it_is() -> None:
    types = {"a": "array<int>", "h": "array<int>", "i": "int"}
    lists = "try_element_at(sort_array(filter(array(a, h), _element -> _element IS NOT NULL)), 1)"
    assert checked("least(i, 1) + size(least(a, h))", "embedded", types=types).expression == (
        f"least(i, 1) + size({lists})")
    assert checked("least(a, h)", "spark", types=types).expression == "least(a, h)"


def test_what_is_no_sql_is_left_to_the_engine() -> None:
    assert on_embedded("rating >=") == "rating >="
    assert on_embedded("'open") == "'open"
