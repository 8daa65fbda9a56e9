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
