"""A run's output folder with everything that registration and the gate read, around a really trained small bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import CALIBRATION, DRAWS, ITEM, LABEL, LABEL_TIME, ROW, TIME, USER, Artifacts
from contracts.bundle import bundle
from models.evaluation.calibration import Calibration
from serving.assembly.assemble import assemble
from tests.serving.conftest import EVENTS, make_config, make_market, write_outputs

WINDOWS = {"train": ["2026-01-01T00:00:00+00:00", "2026-01-07T00:00:00+00:00"],
           "test": ["2026-01-07T00:00:00+00:00", "2026-01-08T00:00:00+00:00"]}


def market_run(
    folder: Path, honest: bool = True, users: int = 60, draws: float | None = None, **sections: dict[str, Any]
) -> Artifacts:
    """`honest` False trains on labels of other rows; `users` is how many the test rows are dealt to. With `draws` rows
    without a click were drawn for a log of positives alone, each so many times as often as it was there."""
    config = make_config(True, **sections)
    market, out = make_market(config), Artifacts(folder)
    learned = market.labels if honest else np.random.default_rng(9).permutation(market.labels)
    write_outputs(replace(market, labels=learned), out)
    if draws is not None:
        _undraw(out.out / "models", draws)
    metrics = assemble(config, out, folder / "build")
    bundle.publish(folder / "build", out.bundle, config.name, settings=config, metrics=metrics)
    user = np.random.default_rng(4).permutation(np.arange(EVENTS) % users)
    rows = {ROW: np.arange(EVENTS), LABEL: market.labels, USER: [f"u{n:02d}" for n in user], **market.events}
    rows |= {ITEM: market.events["item_id"], TIME: stamps(0), LABEL_TIME: stamps(3600)}
    if draws is not None:
        rows[DRAWS] = np.full(EVENTS, draws)
    write(out.features / "day=2026-01-07", rows)
    write(out.examples("test") / "day=2026-01-07", {ROW: np.arange(EVENTS)[::-1].copy()})
    out.windows.parent.mkdir()
    out.windows.write_text(json.dumps(WINDOWS))
    return out


def stamps(first: int) -> pa.Array:
    """A moment a second, from so many seconds after the test window's begin."""
    begin = datetime(2026, 1, 7, tzinfo=UTC) + timedelta(seconds=first)
    return pa.array([begin + timedelta(seconds=n) for n in range(EVENTS)], pa.timestamp("us", "UTC"))


def _undraw(models: Path, draws: float) -> None:
    """The curves, as if they had been fitted to rows of which one without a click stands for 1 / draws of its like."""
    for file in models.glob(f"*/{CALIBRATION}"):
        bundle.save_weights(file, Calibration.from_arrays(bundle.load_weights(file)).undrawn(np.log(draws)).arrays())


def write(folder: Path, columns: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
