"""Latency while bundles are changed, beside that of the stretches between changes, under the same load.

    sluice bench swaps BUNDLE [--swaps 20] [--rate 50] [--workers 1] [--steady-seconds 2] [--json]

A real `sluice serve models:/NAME@champion`, a registry with two versions of the bundle, Poisson arrivals of varied
users, half on kept and half on new connections, timed from when they were due, by callers in a process of their own
(benchmarks/serving/open_loop.py). A swap lasts from the moment the alias moves until the old process is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.open_loop import BEGUN
from benchmarks.serving.process_figures import resident_megabytes
from contracts.bundle import bundle
from contracts.errors import SluiceError
from models.tracking.bundle_registry import CHAMPION, BundleRegistry, Lineage, RegisteredBundle
from serving.bundle.feature_store import FeatureStore
from sluice.demo.server_process import ServerProcess

GONE = "is left by its callers and gone"
KEPT, NEW, DEADLINE_SECONDS = 4, 0.5, 20.0  # connections; share of calls on others; of a call
AS_LONG = 4 * 3600.0  # seconds: longer than all changes take
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


class CallersBeside:
    """Calls of users at a rate, until the end of the `with`; then `due` and `seconds` [N] by the monotonic clock, and
    their `codes`."""

    def __init__(self, target: str, names: Sequence[str], rate: float, folder: Path) -> None:
        (folder / "names").write_text("\n".join(names), encoding="utf-8")
        self._record = folder / "calls.npz"
        with_us = "serving.balancer.ends_with_parent", str(os.getpid()), str(int(signal.SIGTERM)), sys.executable
        self._command = [sys.executable, "-m", *with_us, "-m", "benchmarks.serving.open_loop", target, f"--rate={rate}",
                         f"--seconds={AS_LONG}", f"--deadline={DEADLINE_SECONDS}", f"--names={folder / 'names'}",
                         f"--connections={KEPT}", f"--new={NEW}", f"--record={self._record}"]
        self.due, self.seconds, self.codes = np.zeros(0), np.zeros(0), list[str]()

    def __enter__(self) -> CallersBeside:
        """Raises SluiceError where they are not answered."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != BEGUN:
            raise SluiceError(f"the callers beside ended with {self._process.wait()}; see above")
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Raises SluiceError where they have not asked until now."""
        self._process.terminate()
        self._process.communicate()
        if kind is not None:
            return
        if self._process.returncode:
            raise SluiceError(f"the callers beside ended with {self._process.returncode}; see above")
        with np.load(self._record) as found:
            self.due, self.seconds = found["due"], found["done"] - found["due"]
            self.codes = found["code"].tolist()


def percentiles(seconds: np.ndarray) -> dict[str, float]:
    spent = seconds * 1000
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
            with CallersBeside(server.target, names, rate, folder) as load:
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
    inside = np.any([(load.due >= start) & (load.due <= end) for start, end in spans], axis=0)
    steady = (load.due >= begin) & ~inside
    during, between = percentiles(load.seconds[inside]), percentiles(load.seconds[steady])
    return {
        "date": datetime.now(UTC).date().isoformat(), "swaps": swaps, "rate": rate,
        "failed": sum(code != "OK" for code in load.codes), "codes": dict(Counter(load.codes)),
        "seconds_per_swap": float(np.mean([end - start for start, end in spans])),
        "during": during, "steady": between, "p99_ratio": during["p99"] / between["p99"],
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
