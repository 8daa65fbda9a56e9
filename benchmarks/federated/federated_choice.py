"""Learning rate, local epochs and clip of federated settings, chosen on the validation window; the test is never read.

    sluice bench federated_choice CONFIG --data DIR --out OUT [--rounds 60] [--settings fedavg central ...]

One after the other, each with the values found before: the rate among RATES, the epochs among EPOCHS, the clip among
CLIPS. Masks change no sum (tests/federated/protocol/test_round_server.py), so the search runs without: cpp1 to cpp5
share what is found for cpp2-none-holders, fedsubavg is cpp2-none-heat. Prints what goes below
[federated.overrides] of the file.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.federated.federated_auc import with_data
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.config.federated import FederatedOverrides
from contracts.errors import FederatedError
from federated.clients import client_files, prepare
from federated.jobs.simulate import run_setting

SEARCHED = {"cpp2-none-holders": ("cpp1", "cpp2", "cpp3", "cpp4", "cpp5"), "cpp2-none-heat": ("fedsubavg",),
            "fedavg": ("fedavg",), "central": ("central",)}
RATES, EPOCHS, CLIPS = (0.3, 1.0, 3.0, 10.0), (1, 5), (2.0, 0.2)
WHAT = ("learning_rate", "local_epochs", "clip")


@dataclass
class Search:
    """Runs one setting with some values; a run is made once."""

    config: Config
    out: Artifacts
    rounds: int
    what: tuple[str, ...]
    rates: tuple[float, ...] = RATES
    known: dict[str, float] = field(default_factory=dict)

    def auc(self, setting: str, overrides: FederatedOverrides) -> float:
        """The best validation AUC of a run; 0 where it diverges."""
        federated = self.config.federated.model_copy(update={
            "settings": (setting,), "retrieval": False, "served": setting, "overrides": {setting: overrides},
            "evaluate_every": max(self.rounds // 6, 1),
        })
        config = self.config.model_copy(update={"federated": federated})
        values = overrides.model_dump(exclude_none=True)
        said = "-".join([setting, *(f"{name}{value}" for name, value in values.items())])
        if said in self.known:
            return self.known[said]
        self.known[said] = 0.0
        folder = self._folder(config, said)
        try:
            run = run_setting(setting, config, self.out, folder, lambda *_: None, ("validation",), wire=False)
        except FederatedError:
            return 0.0
        self.known[said] = run.best().auc_validation or 0.0
        return self.known[said]

    def _folder(self, config: Config, name: str) -> Path:
        """The same clients for every run, the configuration of this one."""
        shared, folder = self.out.out / "choice" / "clients", self.out.out / "choice" / name
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
        for name, values in (("learning_rate", self.rates), ("local_epochs", EPOCHS), ("clip", CLIPS)):
            if name not in self.what or (setting == "central" and name != "learning_rate"):
                continue  # central has no clients: an epoch more is a round more
            found = {}
            for value in values:
                found[value] = self.auc(setting, overrides.model_copy(update={name: value}))
                print(f"| {setting} | {name} | {value:g} | {found[value]:.4f} |", flush=True)
            overrides = overrides.model_copy(update={name: max(found, key=lambda value: found[value])})
        return overrides


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
            print("\n".join(f"{key} = {value}" for key, value in chosen.items()), flush=True)


if __name__ == "__main__":
    main()
