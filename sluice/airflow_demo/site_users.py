"""Users of the simulated marketplace who visit a real server without end, and click on what it shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sluice.airflow_demo.steady_load import SteadyLoad
from sluice.airflow_demo.visitors import Visitors, World


class SiteUsers(Visitors, SteadyLoad):
    """In real time: how many come, and what they are shown, hangs on the machine."""

    def __init__(self, target: str, per_second: float, world: World, clicks: Path, seed: int) -> None:
        Visitors.__init__(self, world, clicks, np.random.default_rng([seed, 1]))
        SteadyLoad.__init__(self, target, world[0].values["user"], per_second, seed)
