"""What a client without Flower costs its device: the packages that it needs, start, memory, and a round on one core.

    sluice bench device FOLDER [--setting cpp5] [--clients 20] [--events 1000] [--json]

FOLDER was prepared by `sluice federate` (OUT/federated); its public files and some of its clients are copied, so that
nothing that they remember is touched. Each client gets `events` made-up events to encode and to train on; then they
play one round, all on one core, messages handed over as they are. Seconds are of CPU, of a mean client; start and
memory are those of a fresh process that imports, reads and announces its keys.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import torch
from packaging.requirements import Requirement

from contracts.features import vocabulary
from federated.clients import client_files
from federated.clients.made_up_values import made_up
from federated.device.device import Device
from federated.device.own_events import keep_events
from federated.protocol.messages import PHASES, Message, Phase
from federated.protocol.round_server import RoundServer
from federated.rounds.public_setup import public_setup

MIB, PRODUCT, EXTRA = 2.0**20, "sluice", "device"
FRESH = """
import json, resource, sys, time
started = time.process_time()
import torch
torch.set_num_threads(1)
import numpy as np
from pathlib import Path
from federated.device.device import Device
imported = time.process_time()
device = Device(Path(sys.argv[1]), sys.argv[2], 0)
device.handle("keys", {"round": np.array(5), "clients": np.array(9, np.int32), "run": np.zeros(32, np.uint8)})
print(json.dumps([imported - started, time.process_time() - imported,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


@dataclass(frozen=True)
class PhaseCost:
    """Of a mean client: milliseconds of CPU, KiB of the arrays up and down."""

    milliseconds: float
    up: float
    down: float


@dataclass(frozen=True)
class DeviceCost:
    """`packages`: MiB on the disk of each that the extra `device` needs; seconds are of CPU."""

    packages: dict[str, float]
    packages_mib: float
    import_seconds: float
    start_seconds: float
    memory_mib: float
    clients: int
    events: int
    encode_seconds: float
    phases: dict[str, PhaseCost]
    round_seconds: float


def needed(name: str, extras: Iterable[str]) -> set[str]:
    """Names of all that is installed for it, itself included."""
    found, open_ = set[str](), [(name, frozenset(extras))]
    while open_:
        package, wanted = open_.pop()
        try:
            requirements = distribution(package).requires or []
        except PackageNotFoundError:  # of another platform
            continue
        found.add(package)
        for requirement in map(Requirement, requirements):
            applies = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in {"", *wanted}
            )
            if applies and requirement.name not in found:
                open_.append((requirement.name, frozenset(requirement.extras)))
    return found


def installed_mib(package: str) -> float:
    """Of the files that its installer wrote."""
    there = distribution(package)
    paths = (Path(str(there.locate_file(file))) for file in there.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file()) / MIB


def copied(folder: Path, into: Path, clients: int) -> None:
    """The public files and the first clients, without what they remember."""
    shutil.copytree(client_files.public(folder), client_files.public(into))
    for number in range(clients):
        client_files.client(into, number).mkdir(parents=True)
        for name in (client_files.SAMPLES, client_files.LATER, client_files.IDENTITY):
            shutil.copy(client_files.client(folder, number) / name, client_files.client(into, number) / name)


def encode(folder: Path, clients: int, events: int) -> float:
    """CPU seconds of a client for its events."""
    _, spec = client_files.read_public(folder)
    known, drawn = vocabulary.read_all(client_files.public(folder)), np.random.default_rng(1)
    fields = [field for field in spec.fields if field.kind != "cross"]
    spent = 0.0
    for number in range(clients):
        values = {field.name: made_up(field, known, drawn, events) for field in fields}
        labels = (drawn.random(events) < 0.1).astype(float).tolist()
        before = time.process_time()
        keep_events(folder, number, values, labels)
        spent += time.process_time() - before
    return spent / clients


def played(folder: Path, setting: str, clients: int) -> dict[str, PhaseCost]:
    """One round of all of them."""
    setup = public_setup(folder, setting)
    devices = [Device(folder, setting, number) for number in range(clients)]
    spent: dict[str, list[tuple[float, int, int]]] = defaultdict(list)

    def exchange(phase: Phase, messages: Mapping[int, Message]) -> Iterator[tuple[int, Message]]:
        for number, message in messages.items():
            before = time.process_time()
            reply = devices[number].handle(phase, message)
            spent[phase].append((time.process_time() - before, _size(reply), _size(message)))
            yield number, reply

    RoundServer(setup.plan, 6, exchange, *setup.networks.read()).run(range(clients))
    means = {phase: np.mean(spent[phase], axis=0) for phase in PHASES if phase in spent}
    return {
        phase: PhaseCost(1000 * float(mean[0]), float(mean[1]) / 1024, float(mean[2]) / 1024)
        for phase, mean in means.items()
    }


def _size(message: Message) -> int:
    return sum(array.nbytes for array in message.values())


def fresh(folder: Path, setting: str) -> tuple[float, float, float]:
    """CPU seconds of the imports and of what comes after them, and the most MiB of memory."""
    command = [sys.executable, "-c", FRESH, str(folder), setting]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imports, start, memory = json.loads(done.stdout)
    return imports, start, memory


def cost(folder: Path, setting: str, clients: int, events: int) -> DeviceCost:
    """Raises DataError where the folder was not prepared, ConfigError on a setting that it was not prepared for."""
    torch.set_num_threads(1)
    packages = {name: installed_mib(name) for name in sorted(needed(PRODUCT, [EXTRA]) - {PRODUCT})}
    with tempfile.TemporaryDirectory() as there:
        own = Path(there) / "federated"
        copied(folder, own, clients)
        encoding = encode(own, clients, events)
        phases = played(own, setting, clients)
        imports, start, memory = fresh(own, setting)
    return DeviceCost(packages, sum(packages.values()), imports, start, memory, clients, events, encoding, phases,
                      sum(each.milliseconds for each in phases.values()) / 1000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line a phase, and JSON when asked."""
    parser = argparse.ArgumentParser(
        prog="sluice bench device", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--setting", default="cpp5")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = cost(options.folder, options.setting, options.clients, options.events)
    largest = sorted(found.packages.items(), key=lambda each: -each[1])[:6]
    print(
        f"{len(found.packages)} packages, {found.packages_mib:.0f} MiB: "
        + ", ".join(f"{name} {size:.0f}" for name, size in largest)
    )
    print(
        f"a fresh process: {found.import_seconds:.2f} s of imports, {found.start_seconds:.2f} s to its keys, "
        f"{found.memory_mib:.0f} MiB of memory"
    )
    print(f"{found.events} events encoded and kept in {found.encode_seconds:.3f} s")
    print(f"| phase of {found.clients} clients | ms of CPU | KiB up | KiB down |\n|---|---|---|---|")
    for phase, spent in found.phases.items():
        print(f"| {phase} | {spent.milliseconds:.1f} | {spent.up:.1f} | {spent.down:.1f} |")
    print(f"a round: {found.round_seconds:.2f} s of a core")
    if options.json:
        print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
