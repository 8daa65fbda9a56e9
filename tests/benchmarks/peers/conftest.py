from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.models.batches import spec, write
from benchmarks.peers.plan import Plan
from benchmarks.peers.sequence_plan import SequenceLog, SequencePlan

ROWS = {"train": 600, "validation": 200, "test": 200}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `sluice features` leaves it: ids, numbers and a history; labels that follow from nothing."""
    folder = tmp_path_factory.mktemp("out")
    (folder / "encoding").mkdir()
    spec().write(folder / "encoding")
    for window, rows in ROWS.items():
        write(folder / "examples" / window, spec(), rows)
    return folder


@pytest.fixture
def plan(out: Path, tmp_path: Path) -> Plan:
    return Plan(model="dnn", rows=str(out), out=str(tmp_path), seed=3, threads=1, training_rows=600, batch_size=200,
                width=4, hidden=[8], l2=10.0, epochs=2)


@pytest.fixture
def sequence_plan(tmp_path: Path) -> SequencePlan:
    """Thirty users with three to nine actions each on twenty items."""
    random = np.random.default_rng(1)
    lengths = random.integers(3, 10, 30)
    items = np.concatenate([random.permutation(20)[:length] + 2 for length in lengths])
    log = SequenceLog(np.concatenate([[0], np.cumsum(lengths)]), items, np.arange(30), 22)
    return SequencePlan(rows=str(log.write(tmp_path / "log.npz")), out=str(tmp_path), seed=1, threads=1, batch=40,
                        users=8, negatives=None, width=8, learning_rate=0.01, length=6, epochs=2)
