"""Seconds of a round over Flower's own processes on loopback, with TLS and node authentication.

    sluice bench deployment FOLDER [--setting cpp5] [--nodes 5] [--rounds 4] [--json]

FOLDER was prepared by `sluice federate` (OUT/federated); its public files and its first clients are copied. A SuperLink
and so many SuperNodes (`sluice supernode`) are started; the first round stands apart, since in it every node loads the
run. All processes share this machine, which in a deployment they do not: CPU seconds of all of them stand beside.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.federated.device import copied
from benchmarks.federated.loopback import NAME, ROOT, deployment, flwr, wait_for_file
from contracts.summaries import summary
from contracts.summaries.federated import ServerAppSummary
from federated.protocol.messages import PHASES

SECONDS = 1800.0


@dataclass(frozen=True)
class DeploymentCost:
    """Seconds by the clock: of the first round, of each other, and of its phases, of which two share an exchange where
    rounds overlap; `cpu_seconds` of all processes, from their start to their end."""

    nodes: int
    clients: list[int]
    first: float
    rounds: list[float]
    phases: dict[str, float]
    cpu_seconds: float


def measure(folder: Path, setting: str, nodes: int, rounds: int) -> DeploymentCost:
    """Raises TimeoutError with the logs where the rounds are not done in time."""
    before = _cpu_of_children()
    with tempfile.TemporaryDirectory() as there:
        own = Path(there) / "federated"
        copied(folder, own, nodes)
        with deployment(Path(there) / "home", nodes):
            flwr(Path(there) / "home", "run", str(ROOT), NAME, "-c",
                 f'folder="{own}" setting="{setting}" rounds={rounds} nodes={nodes}')
            run = own / "runs" / f"{setting}-flower"
            wait_for_file(run / summary.FILE, SECONDS, Path(there) / "home")
        history = summary.required(run, ServerAppSummary, "flwr run").history
    later = history[1:]
    phases: dict[str, float] = {
        phase: float(np.mean([entry.seconds_per_phase[phase] for entry in later])) for phase in PHASES}
    return DeploymentCost(nodes, [entry.clients for entry in history], history[0].seconds,
                          [entry.seconds for entry in later], phases, _cpu_of_children() - before)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line a phase, and JSON when asked."""
    parser = argparse.ArgumentParser(
        prog="sluice bench deployment", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--setting", default="cpp5")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error("--rounds of at least 2: the first stands apart")
    found = measure(options.folder, options.setting, options.nodes, options.rounds)
    print("| phase | seconds |\n|---|---|")
    for phase, seconds in found.phases.items():
        print(f"| {phase} | {seconds:.2f} |")
    mean, least, most = np.mean(found.rounds), min(found.rounds), max(found.rounds)
    print(f"{found.nodes} nodes, {min(found.clients)} to {max(found.clients)} clients a round: {mean:.1f} s a round "
          f"({least:.1f} to {most:.1f}), the first {found.first:.1f}; {found.cpu_seconds:.0f} s of CPU in all")
    if options.json:
        print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
