"""Users who visit in real time: a visit of the marketplace at each arrival, its clicks in the folder."""

from __future__ import annotations

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world
from sluice.airflow_demo.site_users import SiteUsers
from sluice.airflow_demo.steady_load import SteadyLoad

WORLD = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)


def test_what_arrives_is_a_visit_of_the_marketplace(tmp_path):
    users = SiteUsers("127.0.0.1:1", 10, WORLD, tmp_path / "clicks", 5)
    assert isinstance(users, SteadyLoad)
    assert set(users.request("u").context) == {"device", "placement", "hour", "weekday"}
    assert not users.outcomes
