"""The simulated marketplace's verdict on a served bundle: models, slates and stages against the known truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.config.config import Config
from models.evaluation.calibration import Calibration
from pipelines.marketplace.truth import CONTEXT, Truth
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import load_calibration
from serving.replay import funnel_timing
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.server.client import RankingClient
from serving.stages.funnel import Funnel
from serving.stages.prerank_scorers import DotProductScorer
from sluice.demo import live_requests, oracle, slates
from sluice.demo.evaluate_crosses import verdict
from sluice.demo.live_requests import Served, Visit
from sluice.demo.slates import KINDS, Market

# What the marketplace plants for a pre-ranker to drop: noise, and a dear cross that says what a cheap field says.
DECOYS = frozenset({"avatar", "market_category"})


def judge(config: Config, out: Artifacts, target: str, count: int) -> dict[str, Any]:
    """Figures `models`, `crosses`, `prerank`, `slate`, `serving`.

    Each of `count` visits is asked of the server with and without re-ranking.
    """
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
    searched, chosen = summary.read(out.crosses), summary.read(out.prerank)
    return {
        "models": oracle.shares(summary.read(out.out / "models")["models"], best),
        **({"crosses": verdict(searched, truth, best)} if searched else {}),
        **({"prerank": chosen | _prerank(out, bundle, visits, markets, chosen["kept"])} if chosen else {}),
        "slate": {**worth, "loss": slates.losses(markets, traces)},
        "serving": live_requests.figures(list(served.values())),
    }


def _prerank(
    out: Artifacts, bundle: LoadedBundle, visits: Sequence[Visit], markets: Sequence[Market], kept: Sequence[str]
) -> dict[str, Any]:
    dot = load_calibration(out.model("two_tower"))
    return {"decoys_kept": len(DECOYS & set(kept)), "slates": _prerank_slates(bundle, visits, markets, dot)}


def _prerank_slates(
    bundle: LoadedBundle, visits: Sequence[Visit], markets: Sequence[Market], dot: Calibration
) -> dict[str, float]:
    """Expected clicks of the slates with the served pre-ranker, the dot product, and the ranker on everything, as
    shares of the oracle's; `lost` is what pre-ranking takes from the slate of the ranker on everything."""
    funnels = {"fscd": Funnel(bundle), "dot_product": Funnel(bundle, DotProductScorer(bundle, dot)),
               "full_ranker": funnel_timing.without_prerank(bundle)}
    chosen = {
        name: [bundle.items.rows([item.item for item in funnel.rank(
            RankQuery(user=visit.user, limit=market.length, context=visit.context, rerank=False, explain=False),
            Deadline(None)).items]) for visit, market in zip(visits, markets, strict=True)]
        for name, funnel in funnels.items()
    }
    worth = slates.shares(markets, chosen, "clicks")
    return {**worth, "lost": 1.0 - worth["fscd"] / worth["full_ranker"]}


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
