from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.models.batches import spec, write
from benchmarks.peers.plan import Plan

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
