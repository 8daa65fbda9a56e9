"""Visits of a day's log: the same on any machine, and to the bundle that is meant."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from contracts.config.simulation import Simulation
from contracts.errors import SluiceError
from pipelines.marketplace.marketplace import build_world
from sluice.airflow_demo.day_visits import DayVisits
from tests.sluice.airflow_demo.ranking_page import ranking_page

WORLD = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)
ITEMS = WORLD[2].values["item"]


def visited(target: str, folder, day: int = 3) -> tuple[list[str], list[tuple[str, str]]]:
    visits = DayVisits(target, WORLD, folder, 5, day)
    visits.send(60)
    visits.send(40)
    clicks = pq.read_table(folder).select(["request_id", "item_id"]).to_pylist()
    return visits.asked, sorted((row["request_id"], row["item_id"]) for row in clicks)


def test_a_day_has_the_same_visits_and_clicks_however_often_it_is_run(tmp_path):
    with ranking_page(ITEMS, "m-1") as page:
        once, again = visited(page.target, tmp_path / "once"), visited(page.target, tmp_path / "again")
        other = visited(page.target, tmp_path / "other", day=4)
    assert once == again
    assert len(once[0]) == len(set(once[0])) == 100
    assert [request.user_id for request in page.requests[:100]] == [r.user_id for r in page.requests[100:200]]
    assert not set(once[0]) & set(other[0])
    assert once[1] != other[1]


def test_visits_wait_for_the_bundle_that_is_meant(tmp_path):
    with ranking_page(ITEMS, "m-1", "m-1", "m-2") as page:
        DayVisits(page.target, WORLD, tmp_path, 5, 3).follow("m-2")
        assert page.versions == ["m-2"]
        with pytest.raises(SluiceError, match="answers by m-2 and not by m-3"):
            DayVisits(page.target, WORLD, tmp_path, 5, 3).follow("m-3", seconds=0.1)


def test_a_visit_without_an_answer_ends_the_demo(tmp_path):
    with ranking_page(ITEMS, "m-1") as page:
        visits = DayVisits(page.target, WORLD, tmp_path, 5, 3)
        visits.send(1)
    with pytest.raises(SluiceError, match="a visit of day 3 failed"):
        visits.send(1)
