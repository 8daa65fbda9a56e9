from __future__ import annotations

import pytest

from pipelines.sql.typed import Difference, is_plain, with_doubles

TYPES = {"i": "int", "l": "bigint", "x": "double", "f": "float", "e": "decimal(10,2)", "g": "decimal(18,6)",
         "t": "string", "ts": "timestamp", "b": "boolean", "s": "array<string>", "w": "decimal(30,2)"}


@pytest.mark.parametrize(("expression", "written"), [
    ("x > 0.3", "x > 0.3D"), ("0.3 < x", "0.3D < x"), ("x BETWEEN -0.5 AND 2", "x BETWEEN -0.5D AND 2"),
    ("x IN (0.5, 1.5)", "x IN (0.5D, 1.5D)"), ("if(b, x, 0.5)", "if(b, x, 0.5D)"), ("e > 0.3", "e > 0.3"),
    ("x * 1.5 > l", "x * 1.5 > l"), ("coalesce(x, 0.0) >= 0.5", "coalesce(x, 0.0D) >= 0.5D"), ("'ü' = t AND f = 0.5",
     "'ü' = t AND f = 0.5D"), ("x > 0.3D", "x > 0.3D"), ("x > 1e-3", "x > 1e-3"),
])
def test_a_decimal_literal_that_meets_a_double_is_written_as_one(expression: str, written: str) -> None:
    assert with_doubles(expression, TYPES) == written


@pytest.mark.parametrize("expression", [
    "if(b, i, x)", "if(b, 1, 0.5)", "CASE WHEN b THEN i ELSE l END", "if(b, e, 0)", "coalesce(f, 0)", "f + 1",
    "f * 2.5", "e / 3", "e % 3", "e + i", "i / 7.0", "e = x", "CAST(x AS STRING)", "CAST(x * 2 AS STRING)",
    "CAST(x AS DECIMAL(9, 2))", "CAST(t AS DECIMAL(9, 2))", "CAST(ts AS BIGINT)", "CAST(s AS STRING)", "xxhash64(w)",
    "xxhash64(t, CAST(l AS DECIMAL(20, 0)))", "hash(t, s)", "hash(array(l))",
])
def test_what_differs_by_its_types_is_refused(expression: str) -> None:
    with pytest.raises(Difference, match=r"embedded engine"):
        with_doubles(expression, TYPES)


@pytest.mark.parametrize("expression", [
    "if(b, l, i)", "if(b, x, 0)", "if(b, x, null)", "CASE WHEN b THEN 'a' ELSE t END", "i / 7", "e + 1.00", "e * g",
    "f * f", "CAST(f AS DOUBLE) * 2", "CAST(i AS STRING)", "CAST(e AS STRING)", "xxhash64(g)", "xxhash64(s)", "hash(l)",
    "nowhere + 1",
    "no sql (",
])
def test_what_is_equal_or_unknown_is_let_pass(expression: str) -> None:
    assert with_doubles(expression, TYPES) == expression


def test_without_types_nothing_is_refused_but_literals() -> None:
    assert with_doubles("if(b, i, x)", {}) == "if(b, i, x)"
    with pytest.raises(Difference):
        with_doubles("if(b, 1, 0.5)", {})


@pytest.mark.parametrize(("expression", "plain"), [
    ("t", True), ("i + 1", True), ("'a'", True), ("size(s)", True), ("s", False), ("array(i)", False),
    ("struct(i)", False), ("sort_array(s)", False), ("my_own(i)", False), ("nowhere", False), ("no sql (", False),
    ("null", False),
])
def test_what_may_be_a_list_or_a_struct_is_not_plain(expression: str, plain: bool) -> None:
    assert is_plain(expression, TYPES) == plain
