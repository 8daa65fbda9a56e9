"""What the demo's days are made of: configuration, log, clicks, registry, and the folders they lie in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from contracts.config.config import Config, load
from models.tracking.bundle_registry import CHAMPION, BundleRegistry
from sluice.airflow_demo import daily_config
from sluice.airflow_demo.market_days import MarketDays

HISTORY, DAYS = 6, 6
LOG_DAYS = HISTORY + DAYS + 1
EVENTS = 30_000  # impressions of the page's old rule a day
USERS_PER_EVENT, ITEMS = 10, 1_000
SERVED_SHARE = 0.06  # visits of a day, per impression of the page's old rule: eight items each, a third of the log
FIELDS = (
    "age_band", "gender", "city", "occupation", "income_band", "tenure_days", "recent_clicks", "category", "brand",
    "brand_tier", "format", "price", "item_id", "item_clicks", "device", "placement", "hour", "weekday",
)
Sections = dict[str, dict[str, Any]]  # as in a configuration file


def sections(events: int) -> Sections:
    """What differs from examples/marketplace.toml: days that roll, and models small enough for two cores."""
    return {
        "simulation": {"events": events * LOG_DAYS, "days": LOG_DAYS, "items": ITEMS,
                       "users": max(events // USERS_PER_EVENT, 400)},
        "log": {"history": "7d"},
        "label": {"clicks": {"window": "6h"}},
        "windows": {"statistics": 0.2, "train": 0.45, "validation": 0.15, "test": 0.2},
        "pair_rates": {"pairs": []},
        "train": {"models": ["popularity", "dnn"], "ranker": "dnn", "epochs": 1, "lightgbm_rows": 0, "tower_epochs": 2},
        "crosses": {"budget": 6, "compare_rows": 0, "epochs": 1, "proposals": 300},
        "prerank": {"requests": 100, "evaluation_requests": 25, "warm_steps": 60, "sweep_steps": 25, "tune_steps": 25,
                    "final_steps": 75, "penalties": [0.1, 0.5]},
        "retrieve": {"candidates": 400, "two_tower": 300, "item_to_item": 50, "popularity": 50},
        # Where the machine is slow answers are, and no request fails: callers wait 20 seconds.
        "serve": {"default_limit": 8, "max_deadline_ms": 20_000, "queue_ms": 20_000},
        # Each limit lies far from an ordinary day and from the mishap that it is there for, in standard errors of so
        # small a day: `python -m sluice.airflow_demo.rehearsal` shows how far.
        "gate": {"margin": 0.03, "max_miscalibration": 0.6, "max_latency_ratio": 4.0},
        "quality": {"psi_floor": 0.5, "rows_floor": 1.0,  # a third more rows on the first day that is served
                    "limits": {"label_rate": [0.01, 0.3], "psi.weekday": 50.0, "churn.weekday": 2.0}},  # one a day
        "watch": {"click_wait": "3s", "min_answers": 200, "max_miscalibration": 1.0,  # clicks and failures decide:
                  "max_p99_ms": 20_000.0, "max_p99_ratio": 1000.0, "max_refusal_rate": 1.0,  # models are trained
                  "max_incomplete_retrieval": 1.0},  # beside the server
    }


class DemoWorld:
    """`days` delivers the log; `last_log` is (answers, clicks) of the newest day that visitors saw.

    Market, visits and models are drawn by `seed`, the example's unless given; `changed` takes the place of keys.
    """

    def __init__(
        self, folder: Path, events: int, console: Console, seed: int | None = None, changed: Sections | None = None
    ) -> None:
        self.folder, self.console = folder, console
        self._sections = daily_config.merged(sections(events), changed or {}) | ({} if seed is None else {"seed": seed})
        self.config_file = self.configured("daily.toml")
        self.config: Config = load(self.config_file)
        assert self.config.simulation is not None
        self.days = MarketDays(self.config.simulation, self.config.seed, folder)
        self.answers, self.clicks, self.runs = folder / "answers", folder / "clicks", folder / "runs"
        self.registry = BundleRegistry(f"sqlite:///{(folder / 'registry.db').resolve()}")
        self.events, self.visits = events, round(events * SERVED_SHARE)
        self.last_log: tuple[pa.Table, pa.Table] | None = None

    def variables(self) -> dict[str, str]:
        """The DAGs' settings, as Airflow Variables."""
        return {
            "sluice_config": str(self.config_file.resolve()), "sluice_data": str(self.days.raw.resolve()),
            "sluice_runs": str(self.runs.resolve()), "sluice_registry": self.registry.uri, "sluice_serving": "",
            "sluice_answers": str(self.answers.resolve()), "sluice_clicks": str(self.clicks.resolve()),
        }

    def configured(self, name: str, changed: Sections | None = None) -> Path:
        """A configuration file beside the daily one, with some keys changed."""
        return daily_config.write(self.folder / name, daily_config.merged(self._sections, changed or {}), FIELDS)

    def champion(self) -> str:
        """The bundle's version; empty before the first."""
        version = self.registry.by_alias(self.config.name, CHAMPION)
        return version.version if version else ""

    def say(self, text: str) -> None:
        """A line on the console."""
        self.console.print(text, highlight=False)
