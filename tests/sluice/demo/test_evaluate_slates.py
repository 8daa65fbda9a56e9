"""Slates against a truth that is known: the oracle's own, none at all, and where the funnel loses value."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contracts.config.config import Config
from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world
from serving.stages.funnel import Funnel
from sluice.demo.evaluate_slates import ServedVisits, evaluate_slates, market, trace
from sluice.demo.live_requests import Served, Visit
from tests.heard_progress import counts, heard
from tests.serving.conftest import make_config

CONFIG: Config = make_config()


def served(visits: ServedVisits, kind: str) -> Served:
    """The oracle's own slates."""
    keys = visits.bundle.items.keys.keys().to_pylist()
    return Served([[keys[row] for row in world.best(kind)] for world in visits.markets], [1.0], [])


def test_the_oracles_own_slates_have_share_one_and_unanswered_visits_zero(visits: ServedVisits) -> None:
    best = replace(visits, served={kind: served(visits, kind) for kind in ("clicks", "value")})
    found, nothing = evaluate_slates(best, CONFIG), evaluate_slates(visits, CONFIG)
    assert (found.clicks.funnel, found.value.funnel) == (pytest.approx(1.0), pytest.approx(1.0))
    assert (nothing.clicks.funnel, nothing.value.funnel) == (0.0, 0.0)
    assert 0 < found.clicks.random < 1
    assert found.clicks.random == nothing.clicks.random  # drawn with the configuration's seed


def test_what_the_stages_lose_adds_up_to_what_the_final_slates_lack(visits: ServedVisits) -> None:
    limit = CONFIG.serve.default_limit
    final = [trace(Funnel(visits.bundle), visit, limit)["rerank"] for visit in visits.visits]
    worth = sum(world.total("value", rows) for world, rows in zip(visits.markets, final, strict=True))
    best = sum(world.total("value", world.best("value")) for world in visits.markets)
    assert sum(dict(evaluate_slates(visits, CONFIG).loss).values()) == pytest.approx(1 - worth / best)


def test_a_market_is_the_truth_in_the_order_of_the_bundles_rows() -> None:
    """Of a bundle whose items stand in reverse; what the user has seen is left out, a user it does not know has seen
    nothing."""
    truth = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)[2]
    known: str = truth.values["user"][3]
    context: Any = {"device": "phone", "placement": "feed", "hour": 9}
    bundle: Any = SimpleNamespace(
        items=SimpleNamespace(keys=SimpleNamespace(keys=lambda: pa.array(truth.values["item"][::-1]))), bids=None,
        users=SimpleNamespace(row=lambda user: 0 if user == known else -1), recent=np.array([[4, 7, -1]]))
    items = truth.item_codes(np.asarray(bundle.items.keys.keys().to_pylist()))
    found = market(truth, items, bundle, Visit(known, context), CONFIG)
    assert found.probability == pytest.approx(truth.slate(known, context)[::-1])
    assert np.flatnonzero(~found.allowed).tolist() == [4, 7]
    assert (found.length, found.reserve) == (CONFIG.serve.default_limit, CONFIG.rerank.reserve_price)
    assert market(truth, items, bundle, Visit(truth.values["user"][4], context), CONFIG).allowed.all()


def test_traces_are_counted(visits: ServedVisits) -> None:
    with heard() as said:
        evaluate_slates(visits, CONFIG)
    assert counts(said, "traces") == [(done, len(visits.visits)) for done in range(len(visits.visits) + 1)]
