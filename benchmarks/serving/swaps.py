"""Latency while bundles are changed, beside that of the stretches between changes, under the same load.

    sluice bench swaps BUNDLE [--swaps 20] [--rate 50] [--workers 1] [--steady-seconds 2] [--json]

A real `sluice serve models:/NAME@champion`, a registry with two versions of the bundle, Poisson arrivals of varied
users, half on kept and half on new channels, timed from when they were due. A swap lasts from the moment the alias
moves until the old process is gone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.process_figures import resident_megabytes
from contracts.bundle import bundle
from contracts.errors import SluiceError
from models.tracking.bundle_registry import CHAMPION, BundleRegistry, Lineage, RegisteredBundle
from serving.bundle.feature_store import FeatureStore
from sluice.airflow_demo.steady_load import Outcome, SteadyLoad
from sluice.demo.server_process import ServerProcess

GONE = "is left by its callers and gone"
WARM_SECONDS, LONGEST_SECONDS = 5.0, 300.0  # before the first change; of one


def versions(source: Path, folder: Path, registry: BundleRegistry) -> list[RegisteredBundle]:
    """The bundle under two names: one more file, which nobody reads."""
    found = []
    for mark in ("one", "two"):
        build = Path(shutil.copytree(source, folder / f"build-{mark}"))
        manifest = bundle.read_manifest(build)
        (build / bundle.MANIFEST).unlink()
        (build / "mark").write_text(mark)
        bundle.publish(build, folder / mark, manifest.name, metrics=manifest.metrics)
        found.append(registry.register(folder / mark, Lineage()))
    return found


def percentiles(outcomes: Sequence[Outcome]) -> dict[str, float]:
    spent = np.array([outcome.seconds for outcome in outcomes]) * 1000
    p50, p95, p99 = np.percentile(spent, (50, 95, 99))
    return {"requests": len(spent), "p50": float(p50), "p95": float(p95), "p99": float(p99), "max": float(spent.max())}


def measure(
    source: Path, swaps: int, rate: float, connection: float, warm: float, workers: int = 1,
    steady_seconds: float | None = None,
) -> dict[str, Any]:
    """Swaps and steady stretches take turns, so that what else the machine does falls on both; where no length is
    given, they are equal."""
    users = FeatureStore.load(source / "tables", "users")
    names = [users.key(row) for row in range(min(len(users), 2000))]
    with tempfile.TemporaryDirectory() as place:
        folder, spans, memory = Path(place), [], []
        registry = BundleRegistry(f"sqlite:///{folder / 'mlflow.db'}")
        both = versions(source, folder, registry)
        registry.point(both[0], CHAMPION)
        log = folder / "server.log"
        options = ("--registry", registry.uri, "--poll-seconds", "0.2", "--connection-seconds", str(connection),
                   "--cache", str(folder / "cache"), "--workers", str(workers))
        server = ServerProcess(f"models:/{both[0].name}@{CHAMPION}", log, options=options)
        try:
            memory.append(resident_megabytes(server.process.pid))
            with SteadyLoad(server.target, names, rate) as load:
                time.sleep(warm)
                begin = time.monotonic()
                for number in range(swaps):
                    start = time.monotonic()
                    registry.point(both[(number + 1) % 2], CHAMPION)
                    _until_gone(log, number, server)
                    end = time.monotonic()
                    spans.append((start, end))
                    time.sleep(end - start if steady_seconds is None else steady_seconds)
            memory.append(resident_megabytes(server.process.pid))
        finally:
            server.stop()
    counted = [outcome for outcome in load.outcomes if outcome.due >= begin]
    during = [one for one in counted if any(start <= one.due <= end for start, end in spans)]
    inside = set(map(id, during))
    steady = [one for one in counted if id(one) not in inside]
    return {
        "date": datetime.now(UTC).date().isoformat(), "swaps": swaps, "rate": rate, "failed": len(load.failed),
        "codes": dict(Counter(outcome.code for outcome in load.outcomes)),
        "seconds_per_swap": float(np.mean([end - start for start, end in spans])),
        "during": percentiles(during), "steady": percentiles(steady),
        "p99_ratio": percentiles(during)["p99"] / percentiles(steady)["p99"],
        "megabytes_before": memory[0], "megabytes_after": memory[1],
    }


def _until_gone(log: Path, number: int, server: ServerProcess) -> None:
    """Until so many bundles have gone before the last one. Raises SluiceError where the server has ended, or takes too
    long."""
    end = time.monotonic() + LONGEST_SECONDS
    while log.read_text().count(GONE) <= number:
        if server.process.poll() is not None or time.monotonic() > end:
            raise SluiceError(f"change {number + 1} of bundles did not end: {log.read_text().strip()[-300:]}")
        time.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--swaps", type=int, default=20)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--connection-seconds", type=float, default=5.0)
    parser.add_argument("--warm-seconds", type=float, default=WARM_SECONDS, help="of load before the first swap")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steady-seconds", type=float, help="between two changes; else as long as the one before took")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    found = measure(
        chosen.bundle, chosen.swaps, chosen.rate, chosen.connection_seconds, chosen.warm_seconds, chosen.workers,
        chosen.steady_seconds)
    if chosen.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<20} {value}")


if __name__ == "__main__":
    main()
