from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ITEM
from contracts.config.config import Config
from contracts.errors import BundleError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from serving.histories.listed_values import listed_fields, load_listed, write_listed


def spec_of(*lengths: int) -> FeatureSpec:
    """Histories of those lengths."""
    known = {"vocabulary": "v", "size": 3}
    kind = FeatureField(name="kind", kind="categorical", side="item", **known)
    return FeatureSpec(fields=(kind, *(
        FeatureField(name=f"last_{length}", kind="sequence", side="user", of="kind", length=length, **known)
        for length in lengths)))


def written(folder: Path, found: Sequence[str | None], of_table: bool) -> Mapping[str, np.ndarray]:
    """Of items whose kind is a column of their table, or of the log."""
    config = Config.model_validate({
        "name": "shop", "log": {"path": "log", "user_id": "user", "item_id": "item", "event_time": "time"},
        "label": {"expression": "clicked"}, "items": {"path": "items", "key": "item"},
        "fields": [{"name": "kind", "kind": "categorical", "side": "item", "column": "sort"}]})
    items = pa.table({ITEM: ["i"], **({"sort": ["a"]} if of_table else {})})
    pq.write_table(items, folder / "items.parquet")
    write_listed(config, folder / "items.parquet", pa.table({"kind": found}), spec_of(2), folder)
    return load_listed(folder, ["kind", "other"], len(found))


def test_fields_that_two_histories_list_are_named_once() -> None:
    assert listed_fields(spec_of(2, 9)) == ["kind"]


@pytest.mark.parametrize(("found", "of_table", "expected"), [
    (["a", None, "b"], True, [True, False, True, False]),
    (["a", None, "b"], False, [True, False, True, True]),
    (["a", "b"], True, [True, True, False]),  # an item that the table lacks
])
def test_what_has_no_value_is_not_listed(
    tmp_path: Path, found: Sequence[str | None], of_table: bool, expected: list[bool]
) -> None:
    assert written(tmp_path, found, of_table)["kind"].tolist() == expected


def test_where_all_have_a_value_nothing_is_written(tmp_path: Path) -> None:
    assert not written(tmp_path, ["a", "b"], of_table=False)
    assert not list(tmp_path.glob("listed*"))


def test_what_is_not_of_these_items_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "listed_kind.npy", np.ones(3, dtype=bool))
    with pytest.raises(BundleError, match=r"listed_kind\.npy has 3 rows, its items need 5: assemble the bundle again"):
        load_listed(tmp_path, ["kind"], 4)
