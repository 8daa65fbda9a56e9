from __future__ import annotations

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from serving.bundle.loaded_bundle import LoadedBundle
from sluice.demo.evaluate_slates import ServedVisits
from sluice.demo.live_requests import Served, Visit
from sluice.demo.slates import Market
from tests.sluice.market_run import market_run

VISITS, LIMIT = 12, 5


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """A run whose bundle pre-ranks with FSCD; a user clicks what lies in the category of their taste."""
    return market_run(tmp_path_factory.mktemp("run"), prerank={"kind": "fscd"})


@pytest.fixture(scope="session")
def visits(run: Artifacts) -> ServedVisits:
    """Twelve visits whose true probabilities are known, answered with nothing."""
    bundle = LoadedBundle.load(run.bundle, check_parity=False)
    items = np.array([int(key[1:]) for key in bundle.items.keys.keys().to_pylist()])
    assert bundle.bids is not None
    users = range(8, 8 + VISITS)
    everything = np.ones(len(items), dtype=bool)
    markets = [Market(np.where(items % 4 == user % 4, 0.6, 0.1), bundle.bids, everything, 0.0, LIMIT) for user in users]
    asked = [Visit(f"u{user:02d}", {"device": "phone", "hour": 9.0}) for user in users]
    unanswered = Served([None] * VISITS, [1.0] * VISITS, ["nobody listens"] * VISITS)
    return ServedVisits(bundle, asked, markets, {"clicks": unanswered, "value": unanswered})
