from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import ROWS, publish, raw_rows
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel


@pytest.fixture(scope="module")
def made() -> LoadedBundle:
    return world(600, "dnn")


def test_what_is_published_is_loaded_with_its_parity_and_answers_as_before(made: LoadedBundle, tmp_path: Path) -> None:
    again = LoadedBundle.load(publish(made, tmp_path, VALUES))
    assert again.parity is not None
    assert (again.parity.rows, again.parity.mismatches) == (ROWS, 0)
    asked = RankQuery("u7", 10, {"context0": "v3"})
    first, second = (Funnel(one).rank(asked, Deadline(None)) for one in (made, again))
    assert [item.item for item in first.items] == [item.item for item in second.items]


def test_every_field_has_raw_values(made: LoadedBundle) -> None:
    rows = raw_rows(made.spec, VALUES)
    assert set(rows) == {field.name for field in made.spec.of_side("user", "context", "item")}
    assert {len(column) for column in rows.values()} == {ROWS}
