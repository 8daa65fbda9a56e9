"""The script, in an environment of its own with DuckDB, on a small market: its figures by other formulas."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pytest

from benchmarks.pipelines.feature_peers import ROOT, command, duckdb_python, environment
from contracts.config.config import load
from contracts.errors import SluiceError
from pipelines.marketplace.marketplace import simulate

DAY = 86_400_000_000
MARKETPLACE = ROOT / "examples" / "marketplace.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("duckdb")
    try:
        peer = duckdb_python(folder / "environment")
    except SluiceError as error:
        pytest.skip(str(error))
    config = load(MARKETPLACE)
    assert config.simulation
    small = config.simulation.model_copy(update={"events": 6_000, "users": 200, "items": 120})
    simulate(small, 1, folder / "raw", folder / "truth")
    (folder / "out").mkdir()
    started = command("duckdb", MARKETPLACE, folder / "raw", folder / "out", folder, "1g", peer)
    subprocess.run(started, env=environment("duckdb", folder), check=True)
    return folder


@pytest.mark.slow
def test_counts_are_those_of_rows_seen_by_the_last_midnight(made: Path) -> None:
    rows = ds.dataset(made / "out" / "features", partitioning="hive").to_table()
    at = rows.column("event_time").to_numpy().astype("datetime64[us]").astype(np.int64)
    known = rows.column("known_time").to_numpy().astype("datetime64[us]").astype(np.int64)
    items = np.array(rows.column("item_id").to_pylist())
    enter, counts = np.maximum(at + 1, known), rows.column("item_clicks_count_2d").to_numpy()
    for row in range(0, len(at), 97):
        midnight = at[row] // DAY * DAY
        inside = (items == items[row]) & (enter <= midnight) & (at + 2 * DAY > midnight) & (enter < at + 2 * DAY)
        assert counts[row] == inside.sum()


@pytest.mark.slow
def test_every_part_is_written(made: Path) -> None:
    spec = json.loads((made / "out" / "spec.json").read_text(encoding="utf-8"))
    assert 0 < spec["prior"] < 1
    assert {"price", "item_clicks_rate_7d"} <= spec["numbers"].keys()
    train = ds.dataset(made / "out" / "examples" / "train", partitioning="hive").to_table()
    assert set(train.column("day").to_pylist()) <= {
        datetime(2026, 1, day, tzinfo=UTC).date().isoformat() for day in range(7, 15)}
    assert all(len(ids) == 20 for ids in train.column("recent_clicks").to_pylist())
    for side in ("users", "items"):
        assert ds.dataset(made / "out" / "online" / f"{side}.parquet").count_rows() > 0
