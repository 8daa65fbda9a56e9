"""The leak check as users meet it: warnings of `sluice features`, and the report that shows why."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load, parse
from contracts.summaries.leaks import LeaksSummary
from pipelines.marketplace.marketplace import simulate
from sluice.report.report import write_report
from sluice.run import jobs

EXAMPLES = Path(__file__).parents[2] / "examples"
DWELL = '\n[[fields]]\nname = "dwell_seconds"\nkind = "numeric"\nside = "context"\n'


def features(config: Config, data: Path, folder: Path) -> tuple[LeaksSummary, str]:
    shown = io.StringIO()
    console = Console(file=shown, width=300)
    _, leaks = jobs.run_features(config, data, Artifacts(folder), console)
    assert leaks is not None
    return leaks, shown.getvalue()


def marketplace(folder: Path) -> tuple[Config, Path]:
    config = parse((EXAMPLES / "marketplace.toml").read_text(encoding="utf-8") + DWELL)
    assert config.simulation is not None
    smaller = config.simulation.model_copy(update={"events": 30_000, "users": 3_000, "items": 600})
    out = Artifacts(folder / "simulated")
    simulate(smaller, config.seed, out.raw, out.truth)
    return config.model_copy(update={"simulation": smaller}), out.raw


@pytest.mark.slow
def test_the_marketplaces_planted_leak_is_caught_and_nothing_else(tmp_path: Path) -> None:
    config, data = marketplace(tmp_path)
    leaks, printed = features(config, data, tmp_path / "out")
    assert list(leaks.suspected) == ["dwell_seconds"]
    assert {"near copy", "after"} <= set(leaks.suspected["dwell_seconds"].kinds)
    assert leaks.planted_found
    assert printed.count("warning: field 'dwell_seconds' may leak the label") >= 2
    page = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "of the positives have a value" in page
    assert "AUC of one field alone" in page
    assert "no value" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "variable", "suspected"),
    [("bank", "BANK", ["duration"]), ("adult", "ADULT", []), ("movielens_100k", "MOVIELENS_100K", [])],
)
def test_real_tables(example: str, variable: str, suspected: list[str], tmp_path: Path) -> None:
    """Bank's duration of the call is known when the call is over; the others have nothing to hide."""
    folder = os.environ.get(variable)
    if folder is None:
        pytest.skip(f"{variable} names no folder with the real table")
    leaks, _ = features(load(EXAMPLES / f"{example}.toml"), Path(folder), tmp_path)
    assert list(leaks.suspected) == suspected
    assert leaks.planted_found
