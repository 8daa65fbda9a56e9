"""Visits drawn from the test window, sent to a real server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contracts.artifacts import USER, Artifacts
from contracts.bundle.bundle import read_manifest
from contracts.config.stages import Serve
from serving.server.client import RankingClient
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from sluice.demo.evaluate_slates import ServedVisits
from sluice.demo.live_requests import Served, Visit, figures, sample_impressions, sample_visits, send
from tests.another_order import in_another_order
from tests.heard_progress import heard
from tests.serving.in_process_server import InProcessServer


def test_visits_are_of_different_users_each_with_the_context_of_an_own_event(
    run: Artifacts, visits: ServedVisits
) -> None:
    drawn = sample_visits(run, visits.bundle.spec, 20, seed=1)
    assert len({visit.user for visit in drawn}) == len(drawn) == 20
    events = pq.read_table(run.features, columns=[USER, "device", "hour"]).to_pylist()
    own = {(event[USER], event["device"], event["hour"]) for event in events}
    assert {(visit.user, visit.context.get("device"), visit.context["hour"]) for visit in drawn} <= own
    assert sample_visits(run, visits.bundle.spec, 20, seed=1) == drawn
    assert sample_visits(run, visits.bundle.spec, 20, seed=2) != drawn


def test_visits_are_the_same_in_whatever_order_rows_lie_in_files(
    run: Artifacts, visits: ServedVisits, tmp_path: Path
) -> None:
    other, spec = in_another_order(run, tmp_path / "other"), visits.bundle.spec
    assert sample_visits(other, spec, 20, seed=1) == sample_visits(run, spec, 20, seed=1)
    assert sample_impressions(other, spec, "test", 20, seed=1) == sample_impressions(run, spec, "test", 20, seed=1)


def test_impressions_are_of_users_as_often_as_they_come(run: Artifacts, visits: ServedVisits) -> None:
    spec = visits.bundle.spec
    everything = Counter(visit.user for visit in sample_impressions(run, spec, "test", 10**6, seed=1))
    users = {visit.user for visit in sample_visits(run, spec, 10**6, seed=1)}
    assert set(everything) == users
    assert everything.total() > len(users)
    drawn = sample_impressions(run, spec, "test", 20, seed=1)
    assert len(drawn) == 20
    assert Counter(visit.user for visit in drawn) <= everything
    assert sample_impressions(run, spec, "test", 20, seed=1) == drawn
    assert sample_impressions(run, spec, "test", 20, seed=2) != drawn


def test_a_visit_that_the_server_refuses_is_an_error_and_no_slate(run: Artifacts, visits: ServedVisits) -> None:
    servicer = RankingServicer(Funnel(visits.bundle), read_manifest(run.bundle), Serve(default_limit=5))
    asked = [*visits.visits[:3], Visit("u20", {"weather": "fine"})]
    with InProcessServer(servicer) as server, RankingClient(server.target) as client, heard() as said:
        found = send(client, asked, skip_rerank=True)
    assert said == [("requests without re-ranking", done, 4) for done in range(5)]
    assert [slate is None or len(slate) for slate in found.slates] == [5, 5, 5, True]
    assert len(found.milliseconds) == 4
    assert ["weather" in error for error in found.errors] == [True]


def test_figures_are_of_all_batches_together() -> None:
    batches = [Served([["a"]] * 99, [1.0] * 99, []), Served([None], [101.0], ["gone"])]
    found = figures(batches)
    assert (found.requests, found.errors, found.p50_ms) == (100, 1, 1.0)
    assert found.p99_ms == pytest.approx(2.0)  # between the 99th and the 100th, linearly
