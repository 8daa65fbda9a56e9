"""Does a server's memory grow? Mixed requests at a steady rate for as long as one likes, memory sampled all along.

    sluice bench memory BUNDLE [--seconds 3600] [--rate 40] [--workers 1] [--json]

A real `sluice serve`; half of the calls on kept, half on new channels (sluice/airflow_demo/steady_load.py): plain ones,
with reasons, of two placements, with a candidate of the request's own, and wrong ones. Memory is what belongs to the
server's processes alone. The first quarter of the time is theirs to settle; the slope is a straight line's through the
rest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.process_figures import own_megabytes
from serving.bundle.feature_store import FeatureStore
from serving.proto import sluice_pb2 as pb
from sluice.airflow_demo.steady_load import SteadyLoad
from sluice.demo.server_process import ServerProcess

SAMPLES, SETTLING = 200, 0.25
KINDS: tuple[dict[str, Any], ...] = (
    {}, {"reasons": True}, {"placements": [pb.Placement(name="a", limit=2), pb.Placement(name="b", limit=3)]},
    {"candidate_list": pb.CandidateList(item_ids=["new"]), "features": {"new": pb.Features(bid=1.0)}}, {"limit": 0},
)


class MixedLoad(SteadyLoad):
    """One kind of request after the other."""

    def __init__(self, target: str, users: Sequence[str], per_second: float) -> None:
        super().__init__(target, users, per_second)
        self._kinds = itertools.cycle(KINDS)

    def request(self, user: str) -> pb.RankRequest:
        return pb.RankRequest(user_id=user, **next(self._kinds))


def measure(bundle: Path, seconds: float, rate: float, workers: int) -> dict[str, Any]:
    """Megabytes at the end of the settling and at the end, and megabytes an hour between them."""
    users = FeatureStore.load(bundle / "tables", "users")
    names, samples = [users.key(row) for row in range(min(len(users), 2000))], list[tuple[float, float]]()
    with tempfile.TemporaryDirectory() as place:
        server = ServerProcess(bundle, Path(place) / "server.log", options=("--workers", str(workers)))
        try:
            with MixedLoad(server.target, names, rate) as load:
                begun = time.monotonic()
                while (now := time.monotonic() - begun) < seconds:
                    samples.append((now, own_megabytes(server.process.pid)))
                    time.sleep(seconds / SAMPLES)
        finally:
            server.stop()
    codes = Counter(outcome.code.partition(":")[0] for outcome in load.outcomes)
    return {"seconds": seconds, "requests": sum(codes.values()), "codes": dict(codes), **growth(samples, seconds)}


def growth(samples: Sequence[tuple[float, float]], seconds: float) -> dict[str, float]:
    """Of (second, megabytes)."""
    settled = np.array([one for one in samples if one[0] >= SETTLING * seconds])
    slope, _ = np.polyfit(settled[:, 0], settled[:, 1], 1)
    tenth = max(len(settled) // 10, 1)
    return {"megabytes_settled": float(np.median(settled[:tenth, 1])),
            "megabytes_at_the_end": float(np.median(settled[-tenth:, 1])), "megabytes_an_hour": float(3600 * slope)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    found = measure(chosen.bundle, chosen.seconds, chosen.rate, chosen.workers)
    if chosen.json:
        print(json.dumps({"memory": found}))
        return
    for name, value in found.items():
        print(f"{name:<22} {value}")


if __name__ == "__main__":
    main()
