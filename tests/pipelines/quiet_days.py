"""Features of quiet days, and of one whose cities are lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import LABEL, ROW, Artifacts
from contracts.config.config import Config

DAYS, ROWS = 6, 400
LAST = f"2026-01-{DAYS:02d}"
CONFIG = Config.model_validate({
    "name": "shop", "log": {"path": "log", "event_time": "time"}, "label": {"expression": "clicked"},
    "fields": [{"name": "city", "kind": "categorical", "side": "context"},
               {"name": "price", "kind": "numeric", "side": "context"}],
})


def write_day(out: Artifacts, number: int, poisoned: bool = False) -> None:
    draw = np.random.default_rng(number)
    cities = draw.choice(["rome", "oslo", "lima"], ROWS).tolist()
    if poisoned:
        cities = [None if draw.random() < 0.4 else city for city in cities]
    folder = out.features / f"day=2026-01-{number:02d}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({
        ROW: np.arange(ROWS) + number * ROWS, LABEL: (draw.random(ROWS) < 0.2).astype(np.float32), "city": cities,
        "price": draw.normal(size=ROWS),
    }), folder / "part-0.parquet")
