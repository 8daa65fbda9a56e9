"""Simulated users: what they ask for, and which of the shown items they click."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world
from serving.proto import sluice_pb2 as pb
from sluice.airflow_demo.site_users import SHOWN_ITEMS, SiteUsers

WORLD = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)
NOBODY = "127.0.0.1:1"


@pytest.fixture
def users(tmp_path) -> SiteUsers:
    return SiteUsers(NOBODY, 10, WORLD, tmp_path / "clicks", 5)


def visit(users: SiteUsers, best: bool, version: str = "market-1") -> pb.RankRequest:
    """One visit, answered with the items of most, or least, worth to the user by the truth."""
    truth, request = WORLD[2], users.request("")
    context = {name: truth.values[name][code] for name, code in users._context[request.request_id].items()}
    order = np.argsort(truth.slate(request.user_id, context))
    chosen = order[::-1][:SHOWN_ITEMS] if best else order[:SHOWN_ITEMS]
    items = [pb.RankedItem(item_id=truth.values["item"][code]) for code in chosen]
    users.answered(request, pb.RankResponse(items=items, bundle_version=version))
    return request


def clicks(users: SiteUsers):
    users.flush()
    return pq.read_table(users._clicks)


def test_a_visit_names_a_known_user_and_a_whole_context(users):
    users.weekday = 3
    request = users.request("")
    assert request.user_id in set(WORLD[2].values["user"])
    assert set(request.context) == {"device", "placement", "hour", "weekday"}
    assert request.limit == SHOWN_ITEMS


def test_clicks_name_the_visit_and_an_item_that_was_shown(users):
    visits = [visit(users, best=True) for _ in range(100)]
    found = clicks(users)
    assert found.num_rows > 0
    assert set(found["request_id"].to_pylist()) <= {one.request_id for one in visits}
    pairs = list(zip(found["request_id"].to_pylist(), found["item_id"].to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs))


def test_what_a_user_likes_gets_more_clicks(users):
    liked = {visit(users, best=True).request_id for _ in range(300)}
    disliked = {visit(users, best=False).request_id for _ in range(300)}
    found = clicks(users)["request_id"].to_pylist()
    assert sum(one in liked for one in found) > 2 * sum(one in disliked for one in found)


def test_who_is_weary_of_a_bundle_leaves_it_alone(users):
    users.weary["market-2"] = 0.0
    tired = {visit(users, best=True, version="market-2").request_id for _ in range(100)}
    fresh = {visit(users, best=True).request_id for _ in range(100)}
    found = set(clicks(users)["request_id"].to_pylist())
    assert found & fresh
    assert not found & tired
