"""Slates of a live server, and the stages behind them, against the simulated marketplace's known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.progress import counted
from contracts.summaries.demo import SlateEvaluation, SlateShares
from pipelines.marketplace.truth import CONTEXT, Truth
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.server.client import RankingClient
from serving.stages.funnel import Funnel
from sluice.demo import live_requests, slates
from sluice.demo.live_requests import Served, Visit
from sluice.demo.server_process import ServerProcess
from sluice.demo.slates import KINDS, Market


@dataclass(frozen=True)
class ServedVisits:
    """`served`: the server's answers to the visits, by kind of slate; `markets`: the truth of the same requests."""

    bundle: LoadedBundle
    visits: Sequence[Visit]
    markets: Sequence[Market]
    served: dict[str, Served]


def serve_visits(
    config: Config, out: Artifacts, truth: Truth, server: ServerProcess, visits: Sequence[Visit]
) -> ServedVisits:
    """Asks the server for each of the visits with and without re-ranking; what needs no server is done before, for one
    that has just begun to start."""
    bundle = LoadedBundle.load(out.bundle, check_parity=False)
    items = item_codes(truth, bundle)
    markets = [market(truth, items, bundle, visit, config) for visit in counted("truths", visits)]
    with RankingClient(server.target) as client:
        client.wait_ready(10)
        served = {kind: live_requests.send(client, visits, skip_rerank=kind == "clicks") for kind in KINDS}
    return ServedVisits(bundle, visits, markets, served)


def evaluate_slates(visits: ServedVisits, config: Config) -> SlateEvaluation:
    """Shares of the oracle's slates that the server reached, beside random and popular items; the loss is that of the
    same funnel in this process."""
    funnel = Funnel(visits.bundle)
    traces = [trace(funnel, visit, config.serve.default_limit) for visit in counted("traces", visits.visits)]
    shares = {kind: _shares(kind, visits, config.seed) for kind in KINDS}
    return SlateEvaluation(
        clicks=shares["clicks"], value=shares["value"], loss=slates.losses(visits.markets, traces))


def item_codes(truth: Truth, bundle: LoadedBundle) -> np.ndarray:
    """Of the bundle's item rows, in the truth: [items]."""
    return truth.item_codes(np.asarray(bundle.items.keys.keys().to_pylist()))


def market(truth: Truth, items: np.ndarray, bundle: LoadedBundle, visit: Visit, config: Config) -> Market:
    """Truth in the order of the bundle's item rows; `items` are their codes in it."""
    probability = truth.slate(visit.user, {name: visit.context[name] for name in CONTEXT})[items]
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


def _shares(kind: str, visits: ServedVisits, seed: int) -> SlateShares:
    return SlateShares(**slates.shares(
        visits.markets,
        {
            "random": slates.random_slates(visits.markets, seed),
            "popularity": slates.popularity_slates(visits.markets, visits.bundle.popularity),
            "funnel": [visits.bundle.items.rows(slate or []) for slate in visits.served[kind].slates],
        },
        kind,
    ))
