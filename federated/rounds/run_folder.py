"""The files of one setting's run.

    FOLDER/runs/SETTING/model.safetensors       rows, dense and the last completed round, replaced by rename after each,
                                                and after an attempt that FedLaAvg's clients have to hear is void
    FOLDER/runs/SETTING/best.safetensors        the same of the round with the best validation AUC
    FOLDER/runs/SETTING/history.json            the figures of each round, with its bytes
    FOLDER/runs/SETTING/population.safetensors  who holds what, where the averaging needs it: counted once
    FOLDER/runs/SETTING/run.name                16 random bytes: in another folder all clients begin anew
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contracts.atomic_write import aside, durable, write_json
from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import FederatedError
from contracts.summaries.federated import RoundFigures
from federated.protocol.messages import RUN_BYTES

MODEL, BEST, HISTORY = "model.safetensors", "best.safetensors", "history.json"
POPULATION, RUN_NAME = "population.safetensors", "run.name"


def name_of(folder: Path) -> bytes:
    """Of the run, drawn the first time."""
    if not (folder / RUN_NAME).exists():
        with durable(folder / RUN_NAME) as draft:
            draft.write_bytes(secrets.token_bytes(RUN_BYTES // 2))
    return (folder / RUN_NAME).read_bytes()


def replace(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write-aside, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with aside(path) as draft:
        save_weights(draft, arrays)


def save(folder: Path, history: Sequence[RoundFigures], model: dict[str, np.ndarray], best: bool) -> None:
    """The history first: of it a restart takes as many entries as the model has rounds. `model` has "rows", "dense",
    "round" and what else a restart needs; `best`: it is the best yet."""
    write_json(folder / HISTORY, [entry.model_dump(mode="json", exclude_none=True) for entry in history], None)
    if best:
        replace(folder / BEST, {name: model[name] for name in ("rows", "dense", "round")})
    replace(folder / MODEL, model)


def saved(folder: Path, rows: np.ndarray, dense: np.ndarray) -> tuple[dict[str, np.ndarray], list[RoundFigures]] | None:
    """The model of the last completed round and the history until then; None where there is none. Raises FederatedError
    where it is of another shape than these."""
    if not (folder / MODEL).exists():
        return None
    stored = {name: np.array(array) for name, array in load_weights(folder / MODEL).items()}
    if stored["rows"].shape != rows.shape or stored["dense"].shape != dense.shape:
        raise FederatedError(f"{folder} holds a model of another shape; give another output folder")
    entries = json.loads((folder / HISTORY).read_text(encoding="utf-8"))
    return stored, [RoundFigures.model_validate(entry) for entry in entries[: int(stored["round"][0])]]
