"""Five days of a marketplace of a few hundred users: a configuration for benchmarks that need Spark's output."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.serving.days import CONFIG
from sluice.airflow_demo.daily_config import merged, write_toml

EVENTS = 4_000
SECTIONS: dict[str, Any] = {
    "name": "tiny",
    "simulation": {"events": EVENTS, "users": 300, "items": 120, "days": 5, "drift": 0.0},
    "spark": {"settings": {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"}},
    "windows": {"statistics": [date(2026, 1, 5), date(2026, 1, 6)], "train": [date(2026, 1, 6), date(2026, 1, 8)],
                "validation": [date(2026, 1, 8), date(2026, 1, 9)], "test": [date(2026, 1, 9), date(2026, 1, 10)]},
    "pair_rates": {"pairs": [["city", "brand"]], "dim": 4, "epochs": 1, "batch_size": 64},
    "train": {"models": ["logistic_regression", "dnn"], "ranker": "dnn", "hidden": [16], "epochs": 1, "tower_epochs": 1,
              "tower_dim": 8, "tower_hidden": [16], "batch_size": 256, "device": "cpu"},
    "retrieve": {"candidates": 60, "two_tower": 60},
    "serve": {"default_limit": 5, "max_limit": 20},
    "prerank": {"kind": "fscd", "keep": 20, "embedding_dim": 4, "hidden": [8], "requests": 40,
                "evaluation_requests": 20, "warm_steps": 5, "sweep_steps": 3, "tune_steps": 2, "final_steps": 3,
                "penalties": [0.03, 1.2]},
}
FIELDS = ("age_band", "occupation", "item_id", "category", "format", "price", "item_clicks", "device", "placement",
          "hour", "age_format")
MORE_FIELDS = [{"name": "city", "kind": "categorical", "side": "user"},
               {"name": "brand", "kind": "categorical", "side": "item"}]


def write(path: Path, **sections: dict[str, Any]) -> Path:
    """With further sections in places."""
    config = merged(merged(tomllib.loads(CONFIG.read_text(encoding="utf-8")), SECTIONS), sections)
    config["fields"] = [*(field for field in config["fields"] if field["name"] in FIELDS), *MORE_FIELDS]
    return write_toml(path, config)
