"""`sluice demo --quick`: the demo's path on a twelfth of the events, with fewer models and steps of each job."""

from __future__ import annotations

from typing import Any

from contracts.config.config import Config

EVENTS, VISITS = 40_000, 100
SECTIONS: dict[str, dict[str, Any]] = {
    "simulation": {"users": 3_000, "items": 800},
    "train": {"models": ("popularity", "logistic_regression", "dnn"), "batch_size": 256, "epochs": 4,
              "tower_epochs": 2, "lightgbm_rows": 0},
    "crosses": {"compare_rows": 0, "epochs": 1, "proposals": 200},
    "pair_rates": {"epochs": 3},
    "retrieve": {"candidates": 300, "two_tower": 300},
    "prerank": {"keep": 100, "requests": 100, "evaluation_requests": 40, "warm_steps": 60, "sweep_steps": 20,
                "tune_steps": 20, "final_steps": 60, "penalties": (0.03, 0.25, 1.2)},
}


def shortened(config: Config) -> Config:
    """Windows, fields and label as they are."""
    assert config.simulation is not None
    sections = {name: getattr(config, name).model_copy(update=values) for name, values in SECTIONS.items()}
    simulation = sections["simulation"].model_copy(update={"events": EVENTS})
    return config.model_copy(update={**sections, "simulation": simulation})
