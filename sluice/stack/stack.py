"""Server, gateway, Prometheus, MLflow and Redis as processes of this machine, without containers.

    python -m sluice.stack.stack BUNDLE             until Ctrl-C; says where everything is
    python -m sluice.stack.stack BUNDLE --check     asks over HTTP, sees a metric, a trace and every query of the
                                                    dashboard answered, stops, exit code 0

Prometheus and Redis take part where they are installed. `make stack` and `make stack-check` start this.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import SluiceError
from sluice.stack.processes import Processes
from sluice.stack.stack_check import check
from sluice.stack.trace_receiver import TraceReceiver

DEPLOY = Path(__file__).parents[2] / "deploy"
START_SECONDS = 180.0
LOOK_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Of loopback."""

    server: int = 50051
    side: int = 9464
    gateway: int = 8080
    prometheus: int = 9090
    mlflow: int = 5000
    redis: int = 6379


def free_ports() -> Ports:
    """For a stack beside another."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
    try:
        server, side, gateway, prometheus, mlflow, redis = (one.getsockname()[1] for one in held)
    finally:
        for one in held:
            one.close()
    return Ports(server=server, side=side, gateway=gateway, prometheus=prometheus, mlflow=mlflow, redis=redis)


class Stack:
    """Starts what there is; `seconds` is how long after its start HTTP was answered."""

    def __init__(self, bundle: Path, folder: Path, ports: Ports, processes: Processes) -> None:
        self.bundle, self.folder, self.ports, self._processes = bundle, folder, ports, processes
        self.seconds, self.has_prometheus = 0.0, shutil.which("prometheus") is not None

    def start(self, traces: str) -> None:
        """`traces` is the address of a collector, "" for none. Raises SluiceError where something does not answer."""
        began, ports, sluice = time.monotonic(), self.ports, (sys.executable, "-m", "sluice.cli")
        with_traces = {**os.environ, **({"OTEL_EXPORTER_OTLP_ENDPOINT": traces} if traces else {})}
        self._processes.start("server", [*sluice, "serve", str(self.bundle), "--port", str(ports.server), "--workers",
                                         "1", "--metrics-port", str(ports.side), "--records", str(self.bundle.parent)],
                              with_traces)
        self._processes.start("gateway", [*sluice, "gateway", "--target", f"127.0.0.1:{ports.server}", "--port",
                                          str(ports.gateway)])
        self._beside()
        self._processes.wait("server", f"http://127.0.0.1:{ports.side}/readyz", START_SECONDS)
        self._processes.wait("gateway", f"http://127.0.0.1:{ports.gateway}/readyz", START_SECONDS)
        self.seconds = time.monotonic() - began
        if self.has_prometheus:
            self._processes.wait("prometheus", f"http://127.0.0.1:{ports.prometheus}/-/ready", START_SECONDS)

    def _beside(self) -> None:
        ports, folder = self.ports, self.folder
        if self.has_prometheus:
            self._processes.start("prometheus", [
                "prometheus", f"--config.file={self._prometheus_config()}", f"--storage.tsdb.path={folder / 'metrics'}",
                f"--web.listen-address=127.0.0.1:{ports.prometheus}"])
        if shutil.which("redis-server"):
            self._processes.start("redis", ["redis-server", "--port", str(ports.redis), "--bind", "127.0.0.1", "--save",
                                            "", "--dir", str(folder)])
        self._processes.start("mlflow", [
            sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(ports.mlflow),
            "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--workers", "1"])

    def _prometheus_config(self) -> Path:
        """The kept one, with this stack's port."""
        text = (DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8")
        text = text.replace("127.0.0.1:9464", f"127.0.0.1:{self.ports.side}").replace(
            "rules.yml", str((DEPLOY / "prometheus" / "rules.yml").resolve())).replace("interval: 5s", "interval: 1s")
        made = self.folder / "prometheus.yml"
        made.write_text(text, "utf-8")
        return made

    def addresses(self) -> list[str]:
        """For people."""
        ports = self.ports
        found = [f"gRPC        127.0.0.1:{ports.server}", f"HTTP        http://127.0.0.1:{ports.gateway}/",
                 f"console     http://127.0.0.1:{ports.side}/", f"MLflow      http://127.0.0.1:{ports.mlflow}/"]
        return found + ([f"Prometheus  http://127.0.0.1:{ports.prometheus}/"] if self.has_prometheus else [])


def run(bundle: Path, checked: bool) -> None:
    """Raises SluiceError where a part does not start, ends by itself, or, `checked`, something is not seen."""
    if not bundle.is_dir():
        raise SluiceError(f"{bundle} is no folder: make a bundle first (make demo), or name another one")
    receiver = TraceReceiver() if checked else nullcontext()
    with tempfile.TemporaryDirectory(prefix="sluice-stack-") as folder, receiver as traces, \
            Processes(Path(folder)) as processes:
        stack = Stack(bundle, Path(folder), free_ports() if checked else Ports(), processes)
        stack.start(traces.address if traces else os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", ""))
        print(*stack.addresses(), sep="\n", flush=True)
        print(f"answers over HTTP after {stack.seconds:.1f} s", flush=True)
        if traces is not None:
            prometheus = stack.ports.prometheus if stack.has_prometheus else None
            for seen in check(stack.ports.gateway, stack.ports.side, prometheus, traces):
                print(seen, flush=True)
            return
        while not processes.ended():
            time.sleep(LOOK_SECONDS)
        raise SluiceError(f"{processes.ended()} has ended; see {processes.log(processes.ended())}")


def main(words: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sluice.stack.stack", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(words)
    try:
        run(given.bundle, given.check)
    except SluiceError as error:
        print(f"stack: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who is asked to end stops what it has started
    sys.exit(main(sys.argv[1:]))
