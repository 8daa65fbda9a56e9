from __future__ import annotations

import pytest

from contracts.config.config import Config
from sluice.engines.column_origin import expression_of

CONFIG = Config.model_validate({
    "name": "shop",
    "log": {"path": "log", "user_id": "who", "item_id": "what", "event_time": "at",
            "derive": {"at": "timestamp_seconds(s)", "hour": "hour(at)", "who": "cast(u as string)"}},
    "label": {"expression": "rating >= 4"},
    "items": {"path": "items", "key": "what", "derive": {"year": "substring(released, 8, 4)"}},
    "fields": [
        {"name": "hour", "kind": "categorical", "side": "context"},
        {"name": "age", "kind": "numeric", "side": "item", "column": "year"},
        {"name": "what", "kind": "categorical", "side": "item"},
        {"name": "clicks", "kind": "counter", "side": "item", "by": ["year"], "windows": ["1d"]},
        {"name": "hour_age", "kind": "cross", "side": "cross", "parts": ["hour", "what"]},
    ],
})


@pytest.mark.parametrize(("column", "expression"), [
    ("_label", "label.expression = 'rating >= 4'"), ("_time", "log.derive.at = 'timestamp_seconds(s)'"),
    ("_user", "log.derive.who = 'cast(u as string)'"), ("hour", "log.derive.hour = 'hour(at)'"),
    ("age", "items.derive.year = 'substring(released, 8, 4)'"),
    ("age#10", "items.derive.year = 'substring(released, 8, 4)'"),
    ("clicks_rate_1d", "items.derive.year = 'substring(released, 8, 4)'"), ("hour_age", "log.derive.hour = 'hour(at)'"),
    ("what", None), ("nowhere", None), ("_row", None),
])
def test_a_column_is_traced_to_the_expression_it_is_computed_by(column: str, expression: str | None) -> None:
    assert expression_of(CONFIG, column) == expression
