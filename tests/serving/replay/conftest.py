"""A log of six days, and requests of its test window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import past_requests
from tests.serving.replay.six_day_log import write_log


@pytest.fixture(scope="session")
def log(market: Any, trained: Artifacts, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    return write_log(market, trained, tmp_path_factory.mktemp("log") / "out")


@pytest.fixture(scope="session")
def asked(market: Any, log: Artifacts, loaded: LoadedBundle) -> list[past_requests.PastRequest]:
    return past_requests.sample(log, market.spec, loaded.items, "test", 30, 10, 86_400, np.random.default_rng(0))
