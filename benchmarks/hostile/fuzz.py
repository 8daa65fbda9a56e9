"""Malformed and oversized requests over the wire to a real server, drawn from the proto by Hypothesis.

    sluice bench fuzz BUNDLE [--requests 10000] [--seed 0] [--json]

None may end the worker, take more than 50 MB or 100 ms, or get another status than docs/reference/errors.md says. Calls
follow one another. `slow` counts the server's processor time, with that of the thread that shows the changes of items
which the call has brought; the caller's times beside it hold a busy machine's too. What the background did beside a
call without its doing is `max_beside_ms`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import grpc
from hypothesis import HealthCheck, Phase, given, seed, settings
from pydantic import BaseModel, ConfigDict

from benchmarks.hostile.messages import Sent, calls
from benchmarks.hostile.outcome import MEGABYTES, MILLISECONDS, Outcome, Target
from sluice.demo.server_process import ServerProcess


class FuzzFigures(BaseModel):
    """`slow` and `large`: calls beyond MILLISECONDS and MEGABYTES; `log_bytes`: what the server has printed."""

    model_config = ConfigDict(frozen=True)

    requests: int
    kinds: dict[str, int]
    statuses: dict[str, int]
    undocumented: int
    slow: int
    large: int
    p50_ms: float
    p999_ms: float
    max_ms: float
    p999_cpu_ms: float
    max_cpu_ms: float
    max_beside_ms: float
    max_mb: float
    max_metadata_bytes: int
    alive: bool
    log_bytes: int


def drive(target: Target, requests: int, seed_: int) -> list[Outcome]:
    """The outcomes of so many calls."""
    found: list[Outcome] = []

    @seed(seed_)
    @settings(max_examples=requests, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(calls())
    def call(sent: Sent) -> None:
        found.append(target.ask(sent))

    call()
    return found


def figures(outcomes: Sequence[Outcome], alive: bool, log_bytes: int) -> FuzzFigures:
    times, work = sorted(one.milliseconds for one in outcomes), sorted(one.cpu_ms for one in outcomes)
    most = int(0.999 * (len(times) - 1))
    return FuzzFigures(
        requests=len(outcomes), kinds=Counter(one.sent.kind for one in outcomes),
        statuses=Counter(one.status for one in outcomes),
        undocumented=sum(not one.documented for one in outcomes),
        slow=sum(one.cpu_ms > MILLISECONDS for one in outcomes),
        large=sum(one.megabytes > MEGABYTES for one in outcomes),
        p50_ms=times[len(times) // 2], p999_ms=times[most], max_ms=times[-1],
        p999_cpu_ms=work[most], max_cpu_ms=work[-1],
        max_beside_ms=max(max(one.beside_ms.values(), default=0.0) for one in outcomes),
        max_mb=max(one.megabytes for one in outcomes), max_metadata_bytes=max(one.metadata_bytes for one in outcomes),
        alive=alive, log_bytes=log_bytes)


def measure(bundle: Path, requests: int, seed_: int) -> FuzzFigures:
    """Against a server of one process, which is asked a good question first and last."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        server = ServerProcess(bundle, log, options=("--workers", "1", "--fresh", str(Path(folder) / "fresh")))
        try:
            with grpc.insecure_channel(server.target) as channel:
                target = Target(server.process.pid, channel)
                target.ask(Sent("Ranking/Rank", "drawn", b"\x0a\x03u01"))
                outcomes = drive(target, requests, seed_)
                alive = target.ask(Sent("Ranking/Rank", "drawn", b"\x0a\x03u01")).status == "OK"
            for one in sorted(outcomes, key=lambda one: one.documented)[:3]:
                if not one.documented:
                    print(f"undocumented: {one.sent.kind} {one.sent.method} {one.status} {one.sent.content[:200]!r}")
            for worst in sorted(outcomes, key=lambda one: -one.cpu_ms)[:3]:
                print(f"slowest: {worst.sent.kind} {worst.sent.method} {worst.status} {worst.cpu_ms:.0f} ms of a core, "
                      f"{worst.megabytes:.0f} MB, {len(worst.sent.content)} bytes {worst.sent.content[:60]!r}")
            return figures(outcomes, alive, log.stat().st_size)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given_ = parser.parse_args()
    found = measure(given_.bundle, given_.requests, given_.seed)
    for name, value in found.model_dump().items():
        print(f"{name:<20} {value:.2f}" if isinstance(value, float) else f"{name:<20} {value}")
    if given_.json:
        print(json.dumps(found.model_dump()))


if __name__ == "__main__":
    main()
