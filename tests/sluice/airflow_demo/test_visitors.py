"""Simulated users: what they ask for, and which of the shown items they click."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world
from sluice.airflow_demo.visitors import SHOWN_ITEMS, Visitors
from tests.sluice.airflow_demo.visits import visit

WORLD = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)
TRUTH = WORLD[2]


@pytest.fixture
def users(tmp_path) -> Visitors:
    return Visitors(WORLD, tmp_path / "clicks", np.random.default_rng(5))


def clicks(users: Visitors):
    users.flush()
    return pq.read_table(users.clicks)


def test_a_visit_names_a_known_user_and_a_whole_context(users):
    users.weekday = 3
    request = users.request()
    assert request.user_id in set(TRUTH.values["user"])
    assert set(request.context) == {"device", "placement", "hour", "weekday"}
    assert request.limit == SHOWN_ITEMS


def test_clicks_name_the_visit_and_an_item_that_was_shown(users):
    visits = [visit(users, TRUTH, best=True) for _ in range(100)]
    found = clicks(users)
    assert found.num_rows > 0
    assert set(found["request_id"].to_pylist()) <= {request.request_id for request, _ in visits}
    pairs = list(zip(found["request_id"].to_pylist(), found["item_id"].to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs))


def test_what_a_user_likes_gets_more_clicks(users):
    liked = {visit(users, TRUTH, best=True)[0].request_id for _ in range(300)}
    disliked = {visit(users, TRUTH, best=False)[0].request_id for _ in range(300)}
    found = clicks(users)["request_id"].to_pylist()
    assert sum(one in liked for one in found) > 2 * sum(one in disliked for one in found)


def test_a_bundle_whose_clicks_drop_off_gets_none(users):
    users.click_dropoff["market-2"] = 1.0
    left = {visit(users, TRUTH, best=True, version="market-2")[0].request_id for _ in range(100)}
    fresh = {visit(users, TRUTH, best=True)[0].request_id for _ in range(100)}
    found = set(clicks(users)["request_id"].to_pylist())
    assert found & fresh
    assert not found & left


def test_equal_generators_draw_the_same_visits_and_the_same_clicks(tmp_path):
    found = []
    for folder in ("once", "again"):
        users = Visitors(WORLD, tmp_path / folder, np.random.default_rng(8))
        visits = [visit(users, TRUTH, best=True) for _ in range(60)]
        place = {request.request_id: number for number, (request, _) in enumerate(visits)}
        rows = clicks(users).select(["request_id", "item_id"]).to_pylist()
        found.append(([(request.user_id, items) for request, items in visits],
                      sorted((place[row["request_id"]], row["item_id"]) for row in rows)))
    assert found[0] == found[1]
