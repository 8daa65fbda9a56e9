from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.config.condition import Condition, OneOf, Within, comparisons, evaluate, parse

NAMES = {"a": (1.0, 2.0, None), "b": (1.0, 3.0, None)}
ORDERS = st.builds(lambda name, sign, value: f"{name} {sign} {value}", st.sampled_from(["a", "b"]),
                   st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(0, 4))
EXPRESSIONS = st.recursive(ORDERS, lambda inner: st.one_of(
    st.builds("not ({})".format, inner), st.builds("({}) and ({})".format, inner, inner),
    st.builds("({}) or {}".format, inner, ORDERS)), max_leaves=6)


def says(condition: Condition, known: dict[str, object]) -> bool:
    def one_of(name: str, values: tuple[object, ...]) -> np.bool:
        return np.bool(known.get(name) in values)

    def within(name: str, least: float, most: float) -> np.bool:
        value = known.get(name)
        return np.bool(isinstance(value, float) and least <= value <= most)

    return bool(evaluate(condition, one_of, within))


@given(EXPRESSIONS, st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([1.0, 2.0, 3.0]))
def test_an_expression_says_what_python_says(text: str, a: float, b: float) -> None:
    assert says(parse(text), {"a": a, "b": b}) == eval(text, {}, {"a": a, "b": b})


@pytest.mark.parametrize(("text", "true"), [
    ("a == 1", False), ("a != 1", True), ("a in (1, 2)", False), ("a not in (1, 2)", True), ("a < 3", False),
    ("a >= 3", False), ("not a < 3", True), ("a == 1 or b == 2", True)])
def test_what_has_no_value_equals_nothing_and_has_no_order(text: str, true: bool) -> None:
    assert says(parse(text), {"b": 2}) is true


def test_chains_lists_and_either_side() -> None:
    found = parse(' 1 <= price < 20 and "x" == shop and kind in {"a"} and flag == True and low > -2.5 ')
    assert [one for one in comparisons(found) if isinstance(one, OneOf)] == [
        OneOf("shop", ("x",)), OneOf("kind", ("a",)), OneOf("flag", (True,))]
    assert Within("price", 1, math.inf) in comparisons(found)
    assert says(found, {"price": 19.9, "shop": "x", "kind": "a", "flag": True, "low": -2.0})
    assert not says(found, {"price": 20.0, "shop": "x", "kind": "a", "flag": True, "low": -2.0})


@pytest.mark.parametrize(("text", "said"), [
    ("", "no condition"), ("price <", "no condition"), ("price", "compares nothing"), ("f(x) == 1", "no name"),
    ("a.b == 1", "no name"), ("a == b", "no value"), ("a == None", "no value"), ("a in ()", "no list"),
    ("a in b", "no list"), ("a < 'x'", "no such order"), ("a < True", "no such order"), ("a is 1", "no such order"),
    ("1 + 1", "compares nothing"), ("a == 1 + 1", "no value"), ("a == -'x'", "no value"), ("a == 1j", "no value"),
    ("a == 99999999999999999999", "no value"), ("(" * 300 + "a == 1" + ")" * 300, "no condition"),
    ("__import__('os')", "compares nothing"), ("a == 1 " * 1000, "at most 2000"), ("a\0 == 1", "no condition"),
    ("x := 3", "no condition"), ("lambda: 1", "compares nothing"), ("'a' == 'b'", "no name"),
    ("a == 1e999", "no value"),
])
def test_anything_else_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        parse(text)
    assert said in str(refused.value)
