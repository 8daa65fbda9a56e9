"""Learning rate, local epochs, clip and server's optimiser of federated settings, chosen on the validation window; the
test is never read.

    sluice bench federated_choice CONFIG --data DIR --out OUT [--rounds 60] [--settings fedavg central ...]

One after the other, each with the values found before: the rate among RATES, the epochs among EPOCHS, the clip among
CLIPS, the server's optimiser among SERVERS. Masks change no sum (tests/federated/protocol/test_round_server.py), so
the search runs without: cpp1 to cpp5 share what is found for cpp2-none-holders, fedsubavg is cpp2-none-heat. Prints
what goes below [federated.overrides] of the file.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from benchmarks.federated.federated_auc import with_data
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.config.federated import FederatedOverrides
from contracts.errors import FederatedError
from contracts.summaries.federated import RoundFigures
from federated.clients import client_files, prepare
from federated.jobs.simulate import run_setting

SEARCHED = {"cpp2-none-holders": ("cpp1", "cpp2", "cpp3", "cpp4", "cpp5"), "cpp2-none-heat": ("fedsubavg",),
            "fedavg": ("fedavg",), "central": ("central",)}
RATES, EPOCHS, CLIPS = (0.3, 1.0, 3.0, 10.0), (1, 5), (2.0, 0.2)
SERVERS: tuple[Mapping[str, object], ...] = (
    {"server_optimizer": "none"}, {"server_optimizer": "momentum", "server_rate": 0.3},
    *({"server_optimizer": "adam", "server_rate": rate} for rate in (0.003, 0.01, 0.03)))
WHAT = ("learning_rate", "local_epochs", "clip", "server")


class Tried(NamedTuple):
    """A run's folder and figures; no figures where it diverged."""

    folder: Path
    history: tuple[RoundFigures, ...]

    def auc(self, rounds: int | None = None) -> float:
        """The best validation AUC within so many rounds (None: all); 0 where there is none."""
        return max((entry.auc_validation or 0.0 for entry in self.history[:rounds]), default=0.0)


@dataclass
class Search:
    """Runs one setting with some values; a run is made once. `evaluations` of a run, one of them after its last
    round."""

    config: Config
    out: Artifacts
    rounds: int
    what: tuple[str, ...]
    rates: tuple[float, ...] = RATES
    servers: Sequence[Mapping[str, object]] = SERVERS
    evaluations: int = 6
    known: dict[str, Tried] = field(default_factory=dict)

    def run(self, setting: str, overrides: FederatedOverrides) -> Tried:
        """All rounds, evaluated on validation alone."""
        federated = self.config.federated.model_copy(update={
            "settings": (setting,), "retrieval": False, "served": setting, "overrides": {setting: overrides},
            "evaluate_every": max(self.rounds // self.evaluations, 1),
        })
        config = self.config.model_copy(update={"federated": federated})
        values = overrides.model_dump(exclude_none=True)
        said = "-".join([setting, *(f"{name}{value}" for name, value in values.items() if value != "none")])
        if said not in self.known:
            self.known[said] = self._tried(setting, config, self._folder(config, said))
        return self.known[said]

    def _tried(self, setting: str, config: Config, folder: Path) -> Tried:
        try:
            run = run_setting(setting, config, self.out, folder, lambda *_: None, ("validation",), wire=False)
        except FederatedError:
            return Tried(folder, ())
        return Tried(run.folder, tuple(run.history))

    def _folder(self, config: Config, name: str) -> Path:
        """The same clients for every run, the configuration of this one."""
        choice = self.out.out / "choice" / str(config.seed)
        shared, folder = choice / "clients", choice / name
        if not shared.exists():
            prepare.prepare(self.config, self.out, shared)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "clients").symlink_to((shared / "clients").absolute())
        _, spec = client_files.read_public(shared)
        client_files.write_public(folder, config, spec)
        client_files.write_identities(folder)
        return folder

    def best(self, setting: str) -> FederatedOverrides:
        configured = self.config.federated.of(setting)
        rounds = configured.rounds if setting == "central" else self.rounds
        overrides = FederatedOverrides(rounds=rounds, batch_size=configured.batch_size)
        overrides = overrides.model_copy(update={"local_epochs": configured.local_epochs, "clip": configured.clip})
        for name in self.what:
            if setting != "central" or name == "learning_rate":  # it has no clients: an epoch more is a round more
                overrides = self._best_of(setting, overrides, name)
        return overrides

    def _best_of(self, setting: str, overrides: FederatedOverrides, name: str) -> FederatedOverrides:
        found = []
        for values in self._choices(name):
            tried = overrides.model_copy(update=dict(values))
            found.append((self.run(setting, tried).auc(), tried))
            print(f"| {setting} | {name} | {' '.join(map(str, values.values()))} | {found[-1][0]:.4f} |", flush=True)
        return max(found, key=lambda each: each[0])[1]

    def _choices(self, name: str) -> Sequence[Mapping[str, object]]:
        if name == "server":
            return self.servers
        values = {"learning_rate": self.rates, "local_epochs": EPOCHS, "clip": CLIPS}[name]
        return [{name: value} for value in values]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--settings", nargs="+", default=list(SEARCHED), choices=list(SEARCHED))
    parser.add_argument("--rates", nargs="+", type=float, default=list(RATES))
    parser.add_argument("--what", nargs="+", default=list(WHAT), choices=list(WHAT))
    arguments = parser.parse_args(argv)
    config, out = load(arguments.config), Artifacts(arguments.out)
    with_data(config, arguments.data, out, Console(stderr=True))
    search = Search(config, out, arguments.rounds, tuple(arguments.what), tuple(arguments.rates))
    print("| setting | what | value | validation AUC |\n|---|---|---|---|")
    for setting in arguments.settings:
        overrides = search.best(setting).model_copy(update={"rounds": None, "batch_size": None})
        for name in SEARCHED[setting]:
            print(f"\n[federated.overrides.{name}]")
            chosen = overrides.model_dump(exclude_none=True)
            print("\n".join(f"{key} = {json.dumps(value)}" for key, value in chosen.items()), flush=True)


if __name__ == "__main__":
    main()
