"""What one run of one ranker is told and what it says afterwards; read in the peer's environment too: plain Python."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

OUTCOME = "outcome.json"  # what a run writes last


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """What is told in a file of JSON."""

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: str | Path) -> Self:
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))


@dataclass(frozen=True, kw_only=True)
class Plan(PlanFile):
    """`rows`: the folder of the rows as the ranker's side reads them. `l2`: the penalty of the vectors of all values is
    l2 / (2 N) times the sum of their squares, N training rows. `out`: where probabilities and outcome go."""

    model: str
    rows: str
    out: str
    seed: int
    threads: int
    training_rows: int
    batch_size: int
    width: int
    hidden: list[int]
    l2: float
    dropout: float = 0.2
    cross_layers: int = 3
    learning_rate: float = 1e-3
    clip_norm: float = 10.0
    epochs: int = 30
    patience: int = 2
    precision: str = "fp32"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`rows_per_second` of training, reading included, evaluation apart; `seconds_to_best` from the first row to the
    validation of the best epoch; `peak_mib` of the process that trains, without readers that it started.

    Beside it lie validation.npy and test.npy: a ranker's probabilities, in file order. Of an encoder of sequences
    test.npy: what it recommends.
    """

    rows_per_second: float
    seconds_to_best: float
    epochs: int
    best_epoch: int
    peak_mib: float

    def write(self, folder: str | Path) -> None:
        Path(folder, OUTCOME).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(folder: str | Path) -> Outcome:
        return Outcome(**json.loads(Path(folder, OUTCOME).read_text(encoding="utf-8")))
