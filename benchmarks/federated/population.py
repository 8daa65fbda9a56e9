"""A large population: what rounds of a thousand clients cost where a hundred thousand have their keys in the list.

    sluice bench population [--clients 100000] [--round 1000] [--rounds 1] [--level cpp5] [--json]

Who holds what comes from the simulated marketplace: a client is a user, its rows are the items that it was shown. Keys,
shares, union, agreement, masked upload and opening are the product's, over Flower's messages in one process, without
local training; rounds take whole cohorts. Bytes are those of a client that takes part to the end, with the list of
public keys, which a client fetches once, beside them. Minutes a round: everything runs on one core. What the server
does of it, and how much of that only once the last client of a phase has replied, stands apart: all clients wait for
that.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from flwr.app import Message
from flwr.clientapp import ClientApp

from benchmarks.federated.federated_setting import client_app
from contracts.config.simulation import Simulation
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.privacy.index_policy import POLICIES
from federated.protocol.plan import Plan
from federated.rounds.byte_count import ByteCount
from federated.rounds.training import FederatedRun
from federated.secure_aggregation.identity import Identity
from pipelines.marketplace.click_stream import show
from pipelines.marketplace.marketplace import build_world

WIDTH, DENSE, KEY_BYTES = 18, 4_096, 32
EVENTS_EACH, MIB = 30, 2.0**20


@dataclass(frozen=True)
class PopulationCost:
    """`mib`: of a client and round on the wire; `list_mib`: the list of keys; `gib`: the most memory of the process,
    which plays all clients; seconds are of one core. `server_seconds` of a round are not the clients',
    `between_seconds` of them lie between the last reply of a phase and the first message of the next, or the end."""

    clients: int
    round: int
    rows: int
    union: float
    mib: float
    list_mib: float
    prepare_seconds: float
    seconds_per_round: float
    rounds_per_minute: float
    server_seconds: float
    between_seconds: float
    gib: float


class TimedGrid(InProcessGrid):
    """Adds up the clients' seconds of a core, and the server's between two phases."""

    def __init__(self, app: ClientApp, nodes: dict[int, int]) -> None:
        super().__init__(app, nodes, {})
        self.clients, self.between = 0.0, 0.0
        self._phase, self._ended = "", time.process_time()

    def _reply_of(self, message: Message) -> Message:
        if message.metadata.message_type != self._phase:
            self._phase = message.metadata.message_type
            self.note_idle()
        started = time.process_time()
        reply = super()._reply_of(message)
        self._ended = time.process_time()
        self.clients += self._ended - started
        return reply

    def note_idle(self) -> None:
        """Nobody but the server has done anything since the last reply."""
        self.between += time.process_time() - self._ended


def holdings(clients: int, rows: int, seed: int = 1) -> list[np.ndarray]:
    """Sorted items of each user of a simulated marketplace, some EVENTS_EACH impressions a user."""
    settings = Simulation(users=clients, items=rows, events=clients * EVENTS_EACH, days=1)
    population, policy, _ = build_world(settings, seed)
    shown = show(np.random.default_rng(seed), population, policy, 0, settings.events, 0)
    order = np.lexsort((shown.items, shown.users))
    users, items = shown.users[order], shown.items[order]
    parts = np.split(items, np.searchsorted(users, np.arange(1, clients)))
    return [np.unique(part) for part in parts]


def cost(clients: int, of_round: int, rounds: int, level: str, rows: int) -> PopulationCost:
    """Runs the rounds."""
    started = time.process_time()
    sets = holdings(clients, rows)
    identities = [Identity.draw(number) for number in range(clients)]
    plan = Plan(
        space=rows, private=((0, rows),), width=WIDTH, dense=DENSE, policy=POLICIES[level],
        masking="union" if level == "cpp5" else "per_row", clients=of_round, max_samples=100,
        identities=tuple(identity.public() for identity in identities),
    )
    counted = ByteCount()
    with tempfile.TemporaryDirectory() as folder:
        app = client_app(plan, sets, identities, Path(folder), samples=100)
        grid = TimedGrid(app, {node: node for node in range(clients)})
        run = FederatedRun(
            plan=plan, exchange=FlowerExchange(grid, list(range(clients)), None, counted), population=clients,
            folder=Path(folder) / "run", seed=1, rows=np.zeros((rows, WIDTH), np.float32),
            dense=np.zeros(DENSE, np.float32), counted=counted, cohorts=True,
        )
        prepared = time.process_time()
        run.run(rounds, lambda rows, dense: {}, rounds + 1, lambda entry: None)
        grid.note_idle()
    seconds = (time.process_time() - prepared) / rounds
    sent = [sum(each.up + each.down for each in entry.bytes.values()) for entry in run.history]
    return PopulationCost(
        clients=clients, round=min(entry.clients for entry in run.history), rows=rows,
        union=float(np.mean([entry.union for entry in run.history])), mib=float(np.mean(sent)) / MIB,
        list_mib=clients * KEY_BYTES / MIB, prepare_seconds=prepared - started, seconds_per_round=seconds,
        rounds_per_minute=60 / seconds, server_seconds=seconds - grid.clients / rounds,
        between_seconds=grid.between / rounds, gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2.0**20,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line, and JSON when asked."""
    parser = argparse.ArgumentParser(
        prog="sluice bench population", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--round", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--level", choices=["cpp1", "cpp2", "cpp3", "cpp4", "cpp5"], default="cpp5")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = cost(options.clients, options.round, options.rounds, options.level, options.rows)
    print(f"{found.clients} clients, {found.round} a round, union {found.union:.0f} of {found.rows} rows: "
          f"{found.mib:.2f} MiB a client and round, list of keys {found.list_mib:.2f} MiB, "
          f"{found.seconds_per_round:.1f} s a round ({found.rounds_per_minute:.2f} a minute), the server's "
          f"{found.server_seconds:.1f}, of which all clients wait for {found.between_seconds:.1f}; "
          f"{found.gib:.2f} GiB, prepared in {found.prepare_seconds:.1f} s")
    if options.json:
        print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
