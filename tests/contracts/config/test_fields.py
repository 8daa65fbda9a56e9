from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.config.fields import DEFAULT_GRANULARITIES, FieldConfig


def field(kind: str, side: str, **more: Any) -> FieldConfig:
    return FieldConfig.model_validate({"name": "f", "kind": kind, "side": side, **more})


COUNTER = field("counter", "item", by=["item"], windows=["1d", "6h"], statistics=["count", "rate"])


def test_a_counter_stands_for_one_feature_per_statistic_and_window() -> None:
    assert COUNTER.features() == ["f_count_1d", "f_rate_1d", "f_count_6h", "f_rate_6h"]
    assert [window for _, _, window in COUNTER.counters()] == [86_400, 86_400, 21_600, 21_600]


def test_any_other_field_stands_for_itself() -> None:
    assert field("categorical", "user").features() == ["f"]


def test_numbers_have_bins_and_nothing_else_has() -> None:
    assert field("numeric", "item").bins() == COUNTER.bins() == DEFAULT_GRANULARITIES
    assert field("numeric", "item", granularities=[5, 50]).bins() == (5, 50)
    assert field("categorical", "item").bins() == ()


def test_a_column_is_named_like_its_field_unless_it_is_said_otherwise() -> None:
    assert field("categorical", "user").source_column == "f"
    assert field("categorical", "user", column="c").source_column == "c"


@pytest.mark.parametrize("name", ["1st", "a b", "a#b", ""])
def test_a_name_is_an_identifier(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        FieldConfig.model_validate({"name": name, "kind": "categorical", "side": "user"})
