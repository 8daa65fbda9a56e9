"""Simulated events a minute, writing included, beside numpy drawing as many uniform numbers (the floor).

    sluice bench marketplace --events 1000000

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import simulate


def measure(events: int, seed: int) -> dict[str, float]:
    """Seconds of simulating `events`, and of drawing as many uniform numbers."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        simulate(Simulation(events=events), seed, Path(folder, "raw"), Path(folder, "truth"))
        spent = time.perf_counter() - started
    started = time.perf_counter()
    np.random.default_rng(seed).random(events)
    floor = time.perf_counter() - started
    return {"events": events, "seconds": spent, "floor_seconds": floor, "million_a_minute": events / spent * 60 / 1e6,
            "floor_million_a_minute": events / floor * 60 / 1e6}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=2026)
    arguments = parser.parse_args(argv)
    reached = measure(arguments.events, arguments.seed)
    ratio = reached["seconds"] / reached["floor_seconds"]
    print(f"simulated events   {reached['million_a_minute']:10.1f} million a minute")
    print(f"uniform numbers    {reached['floor_million_a_minute']:10.1f} million a minute ({ratio:.0f} x)")
    print(json.dumps(reached))


if __name__ == "__main__":
    main()
