from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.config.config import parse
from contracts.config.rules import Rule, rule_problems
from contracts.config.stages import Retrieve
from contracts.errors import ConfigError

RETRIEVE = Retrieve(filter_fields=("category",), range_fields=("price",), created_field="born")


def problems(**told: Any) -> list[str]:
    return rule_problems([Rule(name="r", **told)], RETRIEVE, ["device"])


@pytest.mark.parametrize("told", [
    {"never": 'category == "x" and price < 3 and age > 60 and item != "i" and bid >= 1 and stock == 0'},
    {"pin": "i_1", "position": 3, "when": 'placement == "top" and device in ("phone", "desk")'},
    {"boost": "born > 1_700_000_000", "factor": 1.5}, {"cap": "category", "most": 2}])
def test_good_rules(told: dict[str, Any]) -> None:
    assert problems(**told) == []


@pytest.mark.parametrize(("told", "said"), [
    ({"never": 'categori == "x"'}, "did you mean 'category'"), ({"never": "category < 3"}, "has no order"),
    ({"never": 'price == "dear"'}, "is a number"), ({"boost": 'device == "phone"', "factor": 2}, "'device' is none of"),
    ({"cap": "price", "most": 1}, "not among retrieve.filter_fields"),
    ({"cap": "category", "most": 1, "when": 'category == "x"'}, "'category' is none of"),
    ({"cap": "category", "most": 1, "when": "placement > 2"}, "has no order")])
def test_names_that_nobody_has_are_refused(told: dict[str, Any], said: str) -> None:
    [sentence] = problems(**told)
    assert sentence.startswith("rule 'r': ")
    assert said in sentence


@pytest.mark.parametrize("told", [
    {}, {"never": "item == 'a'", "pin": "b"}, {"boost": "bid > 1"}, {"cap": "c"}, {"pin": "a", "factor": 2},
    {"never": "item == 'a'", "position": 2}, {"pin": "a", "position": 0}, {"boost": "bid > 1", "factor": 0},
    {"never": "1 +"}, {"when": "f()", "pin": "a"}, {"pin": ""}])
def test_rules_that_are_none_are_refused(told: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rule(name="r", **told)


def test_the_configuration_names_the_rule_that_is_wrong() -> None:
    text = """
name = "x"
log = {path = "p", user_id = "u", item_id = "i", event_time = "t"}
label = {expression = "c"}
fields = [{name = "i", kind = "categorical", side = "item"}]
[retrieve]
filter_fields = ["shop"]
[[rules]]
name = "no x"
never = 'shop == "x"'
[[rules]]
name = "no x"
cap = "shap"
most = 2
"""
    with pytest.raises(ConfigError, match="rule 'no x' is given twice") as refused:
        parse(text)
    assert "did you mean 'shop'" in str(refused.value)
    good = parse(text.replace('name = "no x"\ncap = "shap"', 'name = "few"\ncap = "shop"'))
    assert [rule.name for rule in good.rules] == ["no x", "few"]
