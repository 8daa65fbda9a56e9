"""What it costs to be seen: the same requests to a server with side port, scrapes, traces and a line of the log a call,
and to one without.

    sluice bench overhead BUNDLE [--rounds 10] [--requests 300] [--ratio 0.1] [--only traces|metrics|logs] [--json]

Two servers of one process each, asked in turns, one request after the other; `on` sends a share `ratio` of its traces
by OTLP to a receiver beside it, is scraped after every round, and writes JSON lines; `--only` switches one of the three
on. Ratios are on over off, of all rounds together; and of every round to the one beside it, their median with the
interval of 95%, which says something on a busy machine as well, most of all of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.serving.process_figures import cpu_seconds
from contracts.features.field_costs import Interval
from serving.bundle.feature_store import FeatureStore
from serving.replay.cost_measurement import interval
from serving.server.client import RankingClient
from sluice.demo.server_process import ServerProcess
from sluice.stack.trace_receiver import TraceReceiver

VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "SLUICE_LOG_FORMAT",
             "SLUICE_LOG_CALLS")
PARTS = ("traces", "metrics", "logs")
SIDE = "console and metrics on "


class OverheadFigures(BaseModel):
    """Milliseconds of a caller, processor milliseconds of the server a request, and ratios of on over off."""

    model_config = ConfigDict(frozen=True)

    requests: int
    p50_off: float
    p50_on: float
    p99_off: float
    p99_on: float
    cpu_off: float
    cpu_on: float

    p50_paired: Interval
    cpu_paired: Interval

    @property
    def ratios(self) -> dict[str, float]:
        return {"p50": self.p50_on / self.p50_off, "p99": self.p99_on / self.p99_off, "cpu": self.cpu_on / self.cpu_off}


class Round(NamedTuple):
    """Seconds of every request, and processor seconds of the server for all of them."""

    seconds: list[float]
    cpu: float


class Target:
    """One server, and what its rounds took."""

    def __init__(self, process: ServerProcess, side: str = "") -> None:
        self._process, self._side = process, side
        self.rounds: list[Round] = []

    def round(self, users: Sequence[str]) -> None:
        """One request a user, then a scrape where it is seen."""
        before, seconds = self._spent(), []
        with RankingClient(self._process.target) as client:
            for user in users:
                begun = time.perf_counter()
                client.rank(user, seconds=5.0)
                seconds.append(time.perf_counter() - begun)
        if self._side:
            with urllib.request.urlopen(f"{self._side}metrics", timeout=30) as answer:
                answer.read()
        self.rounds.append(Round(seconds, self._spent() - before))

    def _spent(self) -> float:
        return cpu_seconds(self._process.process.pid)


@contextmanager
def variables(values: dict[str, str]) -> Iterator[None]:
    """Of the environment, for processes that are started meanwhile."""
    before = {name: os.environ.pop(name, None) for name in VARIABLES}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def switched_on(parts: Sequence[str], collector: str, ratio: float) -> dict[str, str]:
    """The environment of a server that is seen by these parts."""
    traces = dict(zip(VARIABLES[:3], (collector, "parentbased_traceidratio", str(ratio)), strict=True))
    logs = {"SLUICE_LOG_FORMAT": "json", "SLUICE_LOG_CALLS": "all"}
    return {**(traces if "traces" in parts else {}), **(logs if "logs" in parts else {})}


def measure(
    bundle: Path, rounds: int, requests: int, ratio: float, parts: Sequence[str] = PARTS
) -> OverheadFigures:
    """The first round of each is not counted."""
    store = FeatureStore.load(bundle / "tables", "users")
    users = [store.key(place % len(store)) for place in range(requests)]
    with tempfile.TemporaryDirectory() as folder, TraceReceiver() as receiver:
        off_log, on_log = Path(folder) / "off.log", Path(folder) / "on.log"
        with variables({}):
            without = ServerProcess(bundle, off_log, options=("--workers", "1"))
        try:
            counted = ("--metrics-port", "0") if "metrics" in parts else ()
            with variables(switched_on(parts, receiver.address, ratio)):
                with_all = ServerProcess(bundle, on_log, options=("--workers", "1", *counted))
            try:
                side = on_log.read_text().partition(SIDE)[2].split()[0] if counted else ""
                off, on = Target(without), Target(with_all, side)
                for number in range(rounds + 1):
                    for target in (off, on) if number % 2 else (on, off):
                        target.round(users)
                return figures(off.rounds[1:], on.rounds[1:])
            finally:
                with_all.stop()
        finally:
            without.stop()


def figures(off: Sequence[Round], on: Sequence[Round]) -> OverheadFigures:
    """Of rounds that stood beside one another."""
    draw = np.random.default_rng(0)
    pairs = list(zip(off, on, strict=True))
    (p50_off, p99_off, cpu_off), (p50_on, p99_on, cpu_on) = _together(off), _together(on)
    return OverheadFigures(
        requests=sum(len(one.seconds) for one in on), p50_off=p50_off, p50_on=p50_on, p99_off=p99_off, p99_on=p99_on,
        cpu_off=cpu_off, cpu_on=cpu_on,
        p50_paired=interval(np.array([np.median(b.seconds) / np.median(a.seconds) for a, b in pairs]), draw),
        cpu_paired=interval(np.array([b.cpu / a.cpu for a, b in pairs]), draw))


def _together(rounds: Sequence[Round]) -> tuple[float, float, float]:
    """p50 and p99 of all requests, processor time of one; milliseconds."""
    seconds = np.concatenate([one.seconds for one in rounds])
    p50, p99 = np.percentile(seconds, (50, 99))
    return 1000 * float(p50), 1000 * float(p99), 1000 * sum(one.cpu for one in rounds) / len(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="sluice bench overhead", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.bundle, given.rounds, given.requests, given.ratio, (given.only,) if given.only else PARTS)
    for name, ratio in found.ratios.items():
        print(f"{name:4} {getattr(found, f'{name}_off'):8.3f} ms off {getattr(found, f'{name}_on'):8.3f} ms on   "
              f"{ratio:.3f} times")
    for name, beside in (("p50", found.p50_paired), ("cpu", found.cpu_paired)):
        print(f"{name:4} of rounds in pairs: {beside.value:.3f} times ({beside.low:.3f} to {beside.high:.3f})")
    if given.json:
        print(json.dumps({**found.model_dump(), **{f"{name}_ratio": ratio for name, ratio in found.ratios.items()}}))


if __name__ == "__main__":
    main()
