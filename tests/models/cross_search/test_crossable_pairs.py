from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contracts.config.config import parse
from contracts.errors import DataError
from models.cross_search.crossable_pairs import allowed_pairs, entropy, require_configured, sources
from tests.models.crossed_world import crossed_columns

TOML = """
name = "t"
log = { path = "x", event_time = "t", user_id = "u", item_id = "i" }
label = { expression = "y" }
fields = [
 { name = "f0", kind = "categorical", side = "user" },
 { name = "f1", kind = "categorical", side = "user" },
 { name = "f2", kind = "categorical", side = "user" },
 { name = "f3", kind = "categorical", side = "item" },
 { name = "f4", kind = "categorical", side = "item" },
 { name = "c", kind = "counter", side = "item", by = ["i"], windows = ["2d", "7d"] },
]
"""


def test_a_column_that_determines_the_other_is_senseless() -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), fields=5)
    ids = columns.ids.copy()
    ids[:, 1] = 2 + (ids[:, 0] - 2) // 2  # f0 determines f1
    ids[:, 2] = 2  # one value
    allowed = allowed_pairs(replace(columns, ids=ids), parse(TOML))
    assert not allowed[0, 1]
    assert not allowed[2].any()
    assert allowed[0, 3]
    assert allowed[3, 4]
    np.testing.assert_array_equal(allowed, allowed.T)


@pytest.mark.parametrize(("field", "slot"), [("gone", "gone"), ("c_rate_2d", "c_rate_2d#20")])
def test_columns_of_fields_that_are_not_configured_any_more_are_refused(field: str, slot: str) -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), fields=5)
    first = columns.slots[0]
    binned = first._replace(name="c_rate_2d#10", field="c_rate_2d")
    require_configured(replace(columns, slots=(binned, *columns.slots[1:])), parse(TOML))
    with pytest.raises(DataError, match=rf"'{slot}'.*run `sluice features` first"):
        require_configured(replace(columns, slots=(first._replace(name=slot, field=field), *columns.slots[1:])),
                           parse(TOML))


def test_features_of_one_counter_come_from_one_field() -> None:
    known = sources(parse(TOML))
    assert known["c_count_2d"] == known["c_rate_7d"] == "c"
    assert known["f0"] == "f0"


def test_two_windows_of_one_counter_are_no_pair() -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), fields=5)
    named = zip(columns.slots, ("f0", "c_count_2d", "c_rate_7d", "f3", "f4"), strict=True)
    slots = tuple(slot._replace(name=f"{name}#10", field=name) for slot, name in named)
    allowed = allowed_pairs(replace(columns, slots=slots), parse(TOML))
    assert not allowed[1, 2]
    assert allowed[0, 1]


def test_entropy_of_known_distributions() -> None:
    assert entropy(np.zeros(9, dtype=np.int64), 4) == 0
    assert entropy(np.arange(8), 8) == pytest.approx(np.log(8))
