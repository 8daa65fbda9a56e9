"""Simulated events a minute, writing included, beside numpy drawing as many uniform numbers (the floor).

    sluice bench marketplace --events 1000000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import simulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=2026)
    arguments = parser.parse_args()
    settings = Simulation(events=arguments.events)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        simulate(settings, arguments.seed, Path(folder, "raw"), Path(folder, "truth"))
        spent = time.perf_counter() - started
    started = time.perf_counter()
    np.random.default_rng(arguments.seed).random(arguments.events)
    floor = time.perf_counter() - started
    print(f"simulated events   {arguments.events / spent * 60 / 1e6:10.1f} million a minute")
    print(f"uniform numbers    {arguments.events / floor * 60 / 1e6:10.1f} million a minute ({spent / floor:.0f} x)")


if __name__ == "__main__":
    main()
