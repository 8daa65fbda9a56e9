"""The simulated marketplace's verdict on a served bundle: models, slates and stages against the known truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.config import Config
from pipelines.marketplace_truth import CONTEXT, Truth
from serving.client import RankingClient
from serving.deadline import Deadline
from serving.funnel import Funnel
from serving.loaded_bundle import LoadedBundle
from serving.query import RankQuery
from sluice import live_requests, oracle, slates
from sluice.cross_verdict import verdict
from sluice.live_requests import Served, Visit
from sluice.slates import KINDS, Market


def judge(config: Config, out: Artifacts, target: str, count: int) -> dict[str, Any]:
    """Figures `models`, `crosses`, `slate`, `serving`; each of `count` visits is asked with and without re-ranking."""
    truth = Truth.load(out.truth)
    bundle = LoadedBundle.load(out.bundle, check_parity=False)
    visits = live_requests.sample_visits(out, bundle.spec, count, config.seed)
    with RankingClient(target) as client:
        client.wait_ready(10)
        served = {kind: live_requests.send(client, visits, skip_rerank=kind == "clicks") for kind in KINDS}
    markets = [market(truth, bundle, visit, config) for visit in visits]
    worth = {kind: _shares(kind, markets, bundle, served[kind], config.seed) for kind in KINDS}
    traces = [trace(Funnel(bundle), visit, config.serve.default_limit) for visit in visits]
    best = oracle.oracle_auc(truth, oracle.test_rows(out, CONTEXT))
    searched = summary.read(out.crosses)
    return {
        "models": oracle.shares(summary.read(out.out / "models")["models"], best),
        **({"crosses": verdict(searched, truth, best)} if searched else {}),
        "slate": {**worth, "loss": slates.losses(markets, traces)},
        "serving": live_requests.figures(list(served.values())),
    }


def market(truth: Truth, bundle: LoadedBundle, visit: Visit, config: Config) -> Market:
    """Truth in the order of the bundle's item rows."""
    items = [key.decode() for key in bundle.items.keys]
    context = {name: np.asarray([visit.context[name]]) for name in CONTEXT}
    probability = truth.probability(np.full(len(items), visit.user), np.asarray(items), context)
    allowed = np.ones(len(items), dtype=bool)
    row = bundle.users.row(visit.user)
    if row >= 0:
        seen = bundle.recent[row]
        allowed[seen[seen >= 0]] = False
    bids = bundle.bids if bundle.bids is not None else np.ones(len(items))
    return Market(probability, bids, allowed, config.rerank.reserve_price, config.serve.default_limit)


def trace(funnel: Funnel, visit: Visit, limit: int) -> dict[str, np.ndarray]:
    """Item rows after every stage of one request with the auction on."""
    rows: dict[str, np.ndarray] = {}
    funnel.rank(RankQuery(user=visit.user, limit=limit, context=visit.context), Deadline(None), rows)
    return rows


def _shares(
    kind: str,
    markets: Sequence[Market],
    bundle: LoadedBundle,
    served: Served,
    seed: int,
) -> dict[str, float]:
    funnel = [bundle.items.rows(slate or []) for slate in served.slates]
    return slates.shares(
        markets,
        {
            "random": slates.random_slates(markets, seed),
            "popularity": slates.popularity_slates(markets, bundle.popularity),
            "funnel": funnel,
        },
        kind,
    )
