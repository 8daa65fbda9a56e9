"""What a round costs in the paper's setting: bytes per client at each level beside the published ones, seconds per
phase.

    sluice bench federated [--levels cpp1 cpp2 ...] [--dropout-rate 0.2] [--json]
    sluice bench federated --auc CONFIG --out OUT [--data DIR] [--unmasked] [--seeds N] [--levels] [--json]

The second form adds test AUC of the configuration's settings, by user, beside central training: CONFIG is
examples/movielens_100k.toml with its data, or examples/marketplace_longtail.toml, whose log is simulated.

In the first, 100 clients have 40 neighbours each; a share of them is lost, half before the union, half before the
upload. Bytes are those of Flower's messages on the wire, both directions, of a client that takes part to the end. Local
training is left out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federated.federated_auc import auc_table
from benchmarks.federated.federated_setting import WIDTH, CostSetting, client_app, index_sets
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.config.federated import Federated
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.privacy import privacy_cost
from federated.privacy.index_policy import POLICIES
from federated.protocol.plan import Plan
from federated.protocol.round_server import RoundServer
from federated.rounds.byte_count import ByteCount, predicted
from federated.secure_aggregation.identity import Identity

PUBLISHED = {"cpp1": 1.76, "cpp2": 2.33, "cpp3": 2.78, "cpp4": 3.40, "cpp5": 5.57}
MIB = 2.0**20
LATE = ("train", "agree_update", "open_update")


@dataclass(frozen=True)
class RoundCost:
    """One round at one level: mean bytes of a client on the wire and by formula, seconds, sizes, clients lost."""

    bytes: float
    formula: float
    phases: dict[str, dict[str, float]]
    seconds: float
    seconds_per_phase: dict[str, float]
    union: int
    rows: float
    lost: int
    epsilon: float


def one_round(setting: CostSetting, level: str, dropout_rate: float, seed: int) -> RoundCost:
    clients, sets = setting.clients, index_sets(setting, seed)
    identities = [Identity.draw(number) for number in range(clients)]
    plan = Plan(
        space=setting.space, private=((0, setting.space),), width=WIDTH, dense=setting.dense, policy=POLICIES[level],
        masking="union" if level == "cpp5" else "per_row", clients=clients, neighbours=setting.neighbours,
        expected_union=setting.union, max_samples=1000, identities=tuple(identity.public() for identity in identities),
    )
    gone = np.random.default_rng(seed).choice(clients, round(dropout_rate * clients), replace=False)
    early, late = set(gone[: len(gone) // 2].tolist()), set(gone.tolist())
    with tempfile.TemporaryDirectory() as folder:
        grid = InProcessGrid(
            client_app(plan, sets, identities, Path(folder)), {node: node for node in range(clients)}, {},
            lambda phase, node: phase not in ("keys", "shares") and node in (late if phase in LATE else early),
        )
        counted = ByteCount()
        exchange = FlowerExchange(grid, list(range(clients)), None, counted)
        tables = np.zeros((setting.space, WIDTH), dtype=np.float32)
        started = time.perf_counter()
        found = RoundServer(plan, 1, exchange, tables, np.zeros(setting.dense, dtype=np.float32)).run(range(clients))
        seconds = time.perf_counter() - started
    rows = float(np.mean([len(mine) for mine in found.places.values()]))
    formula = predicted(
        code=plan.code.size, private=setting.space, union=len(found.union), rows=rows, dense=setting.dense, width=WIDTH,
        neighbours=setting.neighbours, clients=clients, per_row=plan.masking == "per_row",
    )
    return RoundCost(
        bytes=counted.per_client_round(), formula=sum(map(sum, formula.values())),
        phases={phase: sent.model_dump() for phase, sent in counted.per_phase().items()},
        seconds=seconds, seconds_per_phase=found.seconds, union=len(found.union), rows=rows,
        lost=clients - len(found.finished), epsilon=privacy_cost.any_rounds(POLICIES[level]),
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", nargs="*", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--dropout-rate", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of the paper's setting: its counts times this")
    parser.add_argument("--auc", type=Path, metavar="CONFIG")
    parser.add_argument("--no-wire", action="store_true", help="AUC without serialising and counting messages: faster")
    parser.add_argument("--unmasked", action="store_true", help="AUC without masks, whose sums are the same: faster")
    parser.add_argument("--seeds", type=int, default=1, help="of the AUC: clients, weights and answers drawn anew")
    parser.add_argument("--settings", nargs="+", help="of the AUC, in place of the configuration's")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.auc and not arguments.out:
        parser.error("--auc needs --out, a folder for its data and runs")
    found: dict[str, RoundCost] = {}
    setting = CostSetting() if arguments.scale == 1.0 else CostSetting().scaled(arguments.scale)
    print("| level | MiB a client and round | by formula | published | rows named | union | seconds a round |")
    print("|---|---|---|---|---|---|---|")
    for level in arguments.levels:
        cost = found[level] = one_round(setting, level, arguments.dropout_rate, arguments.seed)
        print(f"| {level} | {cost.bytes / MIB:.2f} | {cost.formula / MIB:.2f} | {PUBLISHED[level]:.2f} "
              f"| {cost.rows:.0f} | {cost.union} | {cost.seconds:.1f} |", flush=True)
    quality: dict[str, Any] = {}
    if arguments.auc:
        quality = auc_table(changed(load(arguments.auc), arguments.settings, arguments.unmasked), arguments.data,
                            Artifacts(arguments.out), not (arguments.no_wire or arguments.unmasked), arguments.seeds)
    if arguments.json:
        print(json.dumps({"federated": {
            "auc": quality.pop("auc", {}), "of_config": quality,
            "bytes_per_client_round": {level: cost.bytes for level, cost in found.items()},
            "mib_per_client_round": {level: cost.bytes / MIB for level, cost in found.items()},
            "epsilon": {level: finite(cost.epsilon) for level, cost in found.items()},
            "seconds_per_round": float(np.mean([cost.seconds for cost in found.values()])) if found else None,
            "seconds_per_round_of": {level: cost.seconds for level, cost in found.items()},
            "seconds_per_phase": {level: cost.seconds_per_phase for level, cost in found.items()},
            "bytes_per_phase": {level: cost.phases for level, cost in found.items()},
            "dropouts": sum(cost.lost for cost in found.values()), "dropout_rate": arguments.dropout_rate,
        }}))


def changed(config: Config, settings: list[str] | None, unmasked: bool) -> Config:
    """The configuration with what was asked for; settings that it does not know raise ConfigError. Without masks bytes
    are not looked at and the ranker is trained alone: towers and pre-ranker share no weight with it."""
    federated = config.federated.model_dump() | ({"masked": False, "retrieval": False} if unmasked else {})
    if settings:
        federated |= {"settings": tuple(settings), "served": settings[0]}
    return config.model_copy(update={"federated": Federated.model_validate(federated)})


def finite(epsilon: float) -> float | None:
    """None where nothing bounds it: JSON has no infinity."""
    return epsilon if np.isfinite(epsilon) else None


if __name__ == "__main__":
    main()
