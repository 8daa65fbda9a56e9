"""`Score` of 200 items beside the same ranker behind FastAPI, LitServe, BentoML, MLflow's server and Ray Serve.

    sluice bench score_peers [--items 100000] [--peers fastapi litserve bentoml mlflow] [--seconds 5] [--json]

One worker each, the same bundle, the same code in process (benchmarks/serving/score_apps.py); one caller, then four who
ask again at once: by ready bytes on blocking sockets, gRPC and HTTP alike, or with `--by library` by the libraries that
programs use (benchmarks/wire/score_requests.py). Servers take turns, round after round, and the median round counts.
The peers run in an environment of their own, which is made below --environment; torch and the platform come from this
one. A peer that cannot be installed or started is named and left out. The last line with --json is
`score_peers.{...}`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.peers.environment import peer_python
from benchmarks.serving.funnel import USERS, VALUES, world
from benchmarks.serving.score_apps import PEERS, start
from benchmarks.serving.score_callers import CallerFigures, figures
from benchmarks.serving.synthetic_bundle import publish
from benchmarks.wire.score_requests import BY, GRPC
from contracts.errors import SluiceError
from sluice.demo.server_process import ServerProcess

PACKAGES = {"fastapi": ["fastapi", "uvicorn[standard]"], "litserve": ["litserve"], "bentoml": ["bentoml"],
            "mlflow": ["mlflow"]}
START_SECONDS = 120.0
OURS, MANY = GRPC, 4
Found = dict[str, dict[int, list[CallerFigures]]]


def packages_of(peer: str) -> list[str]:
    """For pip; Ray as this environment has it."""
    return [f"ray[serve]=={version('ray')}"] if peer == "ray_serve" else PACKAGES[peer]


def module_of(peer: str) -> str:
    """What can be imported where the peer can be started."""
    return {"fastapi": "fastapi, uvicorn", "ray_serve": "ray.serve"}.get(peer, peer)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def listening(target: str) -> bool:
    host, port = target.split(":")
    with socket.socket() as one:
        return one.connect_ex((host, int(port))) == 0


@contextmanager
def running(python: Path, peer: str, folder: Path, log: Path) -> Iterator[str]:
    """A peer's server, HOST:PORT. Raises SluiceError with the log's end where it does not start."""
    port = free_port()
    process = start(python, peer, folder, port, log)
    try:
        _wait(process, peer, f"127.0.0.1:{port}", log)
        yield f"127.0.0.1:{port}"
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it has started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, sign)
            process.wait(15)


def _wait(process: subprocess.Popen[bytes], peer: str, target: str, log: Path) -> None:
    """Until the first request is answered."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.5)
        if listening(target):
            with suppress(subprocess.CalledProcessError, SluiceError):
                if figures(peer, target, 1, 0.2, 1, 1000).failed == 0:
                    return
    raise SluiceError(f"{peer} did not start: {log.read_text()[-400:].strip()}")


def measure(
    targets: dict[str, str], rounds: int, seconds: float, items: int, by: str, missing: dict[str, str]
) -> Found:
    """Figures by server and number of callers, a list of one per round. A peer that answers nothing any more is left
    out, and added to `missing`; raises SluiceError where it is ours."""
    found: Found = {name: {1: [], MANY: []} for name in targets}
    for _ in range(rounds):
        for callers in (1, MANY):
            for name in [*found]:
                try:
                    found[name][callers].append(figures(name, targets[name], callers, seconds, USERS, items, by))
                except SluiceError as error:
                    if name == OURS:
                        raise
                    missing[name] = str(error)
                    del found[name]
    return found


def summary(found: Found) -> dict[str, dict[str, float]]:
    """Medians over the rounds, and ratios to ours: ours over theirs of requests a second with four callers, theirs over
    ours of p50 and p99 with one."""
    made = {}
    for name, by_callers in found.items():
        one, many = by_callers[1], by_callers[MANY]
        made[name] = {
            "p50_ms": statistics.median(each.p50_ms for each in one),
            "p99_ms": statistics.median(each.p99_ms for each in one),
            "per_second": statistics.median(each.per_second for each in many),
            "p99_of_four_ms": statistics.median(each.p99_ms for each in many),
            "failed": sum(each.failed for each in [*one, *many]),
        }
    ours = made[OURS]
    for figures_ in made.values():
        figures_["our_throughput_over_theirs"] = ours["per_second"] / figures_["per_second"]
        figures_["our_p50_over_theirs"] = ours["p50_ms"] / figures_["p50_ms"]
        figures_["our_p99_over_theirs"] = ours["p99_of_four_ms"] / figures_["p99_of_four_ms"]
    return made


def show(found: dict[str, dict[str, float]]) -> None:
    print(f"{'server':<10}{'p50 ms':>9}{'p99 ms':>9}{'req/s, 4':>10}{'p99 of 4':>10}{'failed':>8}  ours over theirs: "
          "throughput, p50, p99 of 4")
    for name, one in found.items():
        print(f"{name:<10}{one['p50_ms']:9.2f}{one['p99_ms']:9.2f}{one['per_second']:10.0f}"
              f"{one['p99_of_four_ms']:10.2f}{one['failed']:8.0f}  {one['our_throughput_over_theirs']:.2f}, "
              f"{one['our_p50_over_theirs']:.2f}, {one['our_p99_over_theirs']:.2f}")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--ranker", default="dnn")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of every stretch")
    parser.add_argument("--by", choices=BY, default=BY[0], help="who calls")
    parser.add_argument("--environment", type=Path, default=Path(tempfile.gettempdir()) / "sluice-score-peers")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as servers:
        folder = publish(world(chosen.items, chosen.ranker), Path(place), VALUES)
        ours = ServerProcess(folder, Path(place) / "server.log", options=("--workers", "1"))
        servers.callback(ours.stop)
        targets = {OURS: ours.target}
        for peer in chosen.peers:
            try:
                python = peer_python(chosen.environment, [module_of(peer)], packages_of(peer), on_top=True)
                targets[peer] = servers.enter_context(running(python, peer, folder, Path(place) / f"{peer}.log"))
            except SluiceError as error:
                missing[peer] = str(error)
        found = summary(measure(targets, chosen.rounds, chosen.seconds, chosen.items, chosen.by, missing))
    for peer, why in missing.items():
        print(f"left out: {peer}: {why}")
    show(found)
    if chosen.json:
        print(json.dumps({"score_peers": found, "missing": missing, "items": chosen.items, "ranker": chosen.ranker,
                          "by": chosen.by}))


if __name__ == "__main__":
    main()
