from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.config import Config
from contracts.errors import ConfigError, DataError, SchemaError
from pipelines.ingest.item_column import item_column

ITEMS: dict[str, object] = {"path": "{data}/items.csv", "format": "csv", "options": {"header": "true"}, "key": "id",
                            "derive": {"payer": "upper(adv)"}}


def config(items: dict[str, object] | None = ITEMS) -> Config:
    return Config.model_validate({
        "name": "shop", "log": {"path": "log", "user_id": "u", "item_id": "i"}, "label": {"expression": "y"},
        "items": items, "fields": [{"name": "item", "kind": "categorical", "side": "item", "column": "i"}]})


def test_a_column_by_the_keys_of_the_rows_that_a_run_takes(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("id,adv\n007,x\n12,\n,z\n1,a\n1,a\n5,b,c\n")
    assert item_column(config(), tmp_path, "adv") == {"007": "x", "12": None, "1": "a"}
    assert item_column(config(), tmp_path, "payer") == {"007": "X", "12": None, "1": "A"}
    assert item_column(config(), tmp_path, "id") == {"007": "007", "12": "12", "1": "1"}


def test_of_rows_that_repeat_a_key_the_same_one_counts_whatever_their_order(tmp_path: Path) -> None:
    found = []
    for order in (1, -1):
        (tmp_path / "items.csv").write_text("".join(["id,adv\n", *["1,a\n", "1,b\n", "1,c\n"][::order]]))
        found.append(item_column(config(), tmp_path, "adv"))
    assert found[0] == found[1]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="items: nothing to read at"):
        item_column(config(), tmp_path, "adv")
    (tmp_path / "items.csv").write_text("id,adv\n1,a\n")
    with pytest.raises(SchemaError, match=r"items \(.*items\.csv\): column 'pay' is missing; found .*payer"):
        item_column(config(), tmp_path, "pay")
    with pytest.raises(SchemaError, match=r"items\.key: column 'number' is missing"):
        item_column(config({**ITEMS, "key": "number"}), tmp_path, "adv")
    with pytest.raises(ConfigError, match=r"'adv' is a column of the items' table, .*: add \[items\]"):
        item_column(config(None), tmp_path, "adv")
