from __future__ import annotations

from typing import Any

import pytest

from contracts.config.config import Config
from contracts.errors import SchemaError
from pipelines.ingest.log_columns import kept_columns

LOG = ["uid", "iid", "hour", "city", "brand", "other"]


def config(*fields: dict[str, Any], filters: tuple[str, ...] = ()) -> Config:
    return Config.model_validate(
        {
            "name": "t",
            "log": {"path": "p", "user_id": "uid", "item_id": "iid", "event_time": "at"},
            "label": {"expression": "y"},
            "fields": fields,
            "retrieve": {"filter_fields": filters},
        }
    )


def field(name: str, side: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "categorical", "side": side, **more}


def test_columns_come_from_the_table_of_their_side_first() -> None:
    fields = [field("hour", "context"), field("town", "user", column="city"), field("brand", "item")]
    assert kept_columns(config(*fields), LOG, ["city"], []) == ["hour", "brand"]
    assert kept_columns(config(*fields), LOG, [], ["brand"]) == ["hour", "city"]


def test_keys_come_from_the_roles() -> None:
    counter = field("ctr", "item", kind="counter", by=["iid", "brand"], windows=["1d"])
    assert kept_columns(config(field("user", "user", column="uid"), counter), LOG, [], []) == ["brand"]


def test_histories_and_crosses_read_no_column_and_filters_do() -> None:
    fields = [
        field("item", "item", column="iid"),
        field("last", "user", kind="sequence", of="item"),
        field("hour", "context"),
        field("both", "cross", kind="cross", parts=["item", "hour"]),
    ]
    assert kept_columns(config(*fields, filters=("brand",)), LOG, [], []) == ["hour", "brand"]


def test_histories_read_columns_of_the_log_alone() -> None:
    told = config(field("hour", "context")).model_dump(mode="json")
    told["retrieve"] |= {"events": ["time", "other", "hour"], "channels": {"hstu": {}}}
    assert kept_columns(Config.model_validate(told), LOG, ["other"], ["other"]) == ["hour", "other"]
    told["retrieve"]["events"] = ["othre"]
    with pytest.raises(SchemaError, match=r"retrieve.events: column 'othre'.*did you mean 'other'"):
        kept_columns(Config.model_validate(told), LOG, [], [])


def test_a_column_that_is_nowhere_is_named_with_the_nearest() -> None:
    with pytest.raises(
        SchemaError, match=r"field 'brandt': column 'brandt' is in no table .*\(item\).*did you mean 'brand'"
    ):
        kept_columns(config(field("brandt", "item")), LOG, [], [])
    with pytest.raises(SchemaError, match=r"retrieve.filter_fields: column 'colour'"):
        kept_columns(config(field("hour", "context"), filters=("colour",)), LOG, [], [])


@pytest.mark.parametrize("name", ["day", "_label"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match=f"'{name}' is reserved"):
        kept_columns(config(field(name, "context")), [name], [], [])
