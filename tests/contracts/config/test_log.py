from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.config.log import Label, Log

CLICKS: dict[str, Any] = {"path": "c", "on": ["request_id"]}


def test_a_label_has_exactly_one_source() -> None:
    assert Label.model_validate({"expression": "y"}).clicks is None
    assert Label.model_validate({"clicks": CLICKS}).expression is None
    for both_or_none in ({}, {"expression": "y", "clicks": CLICKS}):
        with pytest.raises(ValidationError, match=r"exactly one of label\.expression and label\.clicks"):
            Label.model_validate(both_or_none)


def test_durations_are_seconds() -> None:
    label = Label.model_validate({"clicks": CLICKS | {"window": "6h"}})
    assert label.clicks is not None
    assert label.clicks.window == 21_600
    assert Log.model_validate({"path": "p", "history": "7d"}).history == 604_800


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_the_share_of_bad_rows_lies_between_none_and_all(share: float) -> None:
    with pytest.raises(ValidationError, match="max_bad_share"):
        Log(path="p", max_bad_share=share)


@pytest.mark.parametrize(("label", "sentence"), [
    ({"positives_only": True, "expression": "y"}, r"label\.expression says which rows are; leave one of them out"),
    ({"positives_only": True, "clicks": CLICKS}, r"label\.clicks says which rows are"),
    ({"expression": "y", "repeat": True}, r"label\.repeat and label\.negatives .* set label\.positives_only"),
    ({"expression": "y", "negatives": {"popularity": 0.5}}, r"set label\.positives_only"),
    ({"positives_only": True, "negatives": {"popularity": 1.5}}, "less than or equal to 1"),
    ({"positives_only": True, "negatives": {"per_positive": 0}}, "greater than or equal to 1"),
])
def test_positives_alone_have_no_other_label(label: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Label.model_validate(label)


def test_a_label_of_positives_alone_comes_back_from_its_text() -> None:
    for label in (Label(positives_only=True, repeat=True), Label(expression="y")):
        assert Label.model_validate_json(label.model_dump_json()) == label


def test_columns_of_the_clock_are_those_made_from_the_time() -> None:
    derive = {"hour": "cast(hour(Shown_At) as bigint)", "long": "length(shown_at_place)", "two": "a + b"}
    assert Log.model_validate({"path": "p", "event_time": "shown_at", "derive": derive}).clock_columns == {"hour"}
    assert Log.model_validate({"path": "p", "derive": derive}).clock_columns == frozenset()
