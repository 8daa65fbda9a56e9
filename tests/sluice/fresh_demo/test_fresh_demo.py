"""An hour of a tiny marketplace, asked of real servers over its trained bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import load
from contracts.errors import ConfigError, SluiceError
from contracts.summaries import summary
from contracts.summaries.demo import FreshHourSummary
from pipelines.marketplace.marketplace import simulate
from serving.bundle.loaded_bundle import LoadedBundle
from sluice.fresh_demo.fresh_demo import FOLDER, clicked_before, draw_hour, newcomer_values, run_fresh
from sluice.fresh_demo.hour import HourSettings
from sluice.fresh_demo.shelf import ShelfShares
from sluice.run import jobs
from tests.benchmarks import tiny_market

SETTINGS = HourSettings(visits=150, users=10, shares=ShelfShares(0.2, 0.2, 0.2, 0.2), seed=3)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    folder = tmp_path_factory.mktemp("market")
    sections: dict[str, Any] = {"prerank": {"kind": "dot_product"}, "crosses": {"budget": 0},
                                "pair_rates": {"pairs": []}, "train": {"models": ["dnn"]}}
    config, out = load(tiny_market.write(folder / "tiny.toml", **sections)), Artifacts(folder / "out")
    config = config.model_copy(update={"spark": type(config.spark)()})  # the embedded engine
    assert config.simulation is not None
    simulate(config.simulation, config.seed, out.raw, out.truth)
    jobs.run_all(config, str(out.raw), out, Console(quiet=True))
    return out


@pytest.fixture(scope="module")
def found(market: Artifacts) -> FreshHourSummary:
    return run_fresh(market.out, None, Console(quiet=True), SETTINGS)


def test_without_a_demo_a_quick_one_of_as_many_events_is_made_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def made(folder: Path, events: int | None, **how: Any) -> None:
        raise SluiceError(f"made {folder.name} of {events}, quick {how['quick']}, kept serving {how['keep_serving']}")

    monkeypatch.setattr("sluice.fresh_demo.fresh_demo.run_demo", made)
    with pytest.raises(SluiceError, match="made new of 20000, quick True, kept serving False"):
        run_fresh(tmp_path / "new", 20_000, Console(quiet=True))


@pytest.mark.slow
def test_the_events_of_a_demo_that_is_there_cannot_be_chosen(market: Artifacts) -> None:
    with pytest.raises(ConfigError, match="leave --events out"):
        run_fresh(market.out, 20_000, Console(quiet=True))


@pytest.mark.slow
def test_a_server_that_is_told_of_the_shelf_loses_nothing_and_one_that_is_not_does(found: FreshHourSummary) -> None:
    nothing, items, fresh = (found.runs[name] for name in ("nothing", "items", "items_and_events"))
    assert nothing.lost > 0 < nothing.unavailable
    assert (items.lost, items.unavailable, fresh.lost, fresh.unavailable) == (0, 0, 0, 0)
    assert (nothing.changes, nothing.events, items.events) == (0, 0, 0)
    assert items.changes == fresh.changes == sum(found.changes.values())
    assert fresh.events == fresh.places + fresh.clicked
    for run in found.runs.values():
        assert 0 < run.clicks.share < 1
        assert 0 < run.value.share < 1


@pytest.mark.slow
def test_what_was_clicked_comes_again_unless_events_say_so(found: FreshHourSummary) -> None:
    assert found.runs["nothing"].repeated > 0
    assert found.runs["items_and_events"].repeated == 0


@pytest.mark.slow
def test_the_hour_can_be_read_again_and_is_the_same(market: Artifacts, found: FreshHourSummary) -> None:
    place = market.out / FOLDER
    assert summary.read(place, FreshHourSummary) == found
    assert (place / "report.html").read_text(encoding="utf-8").count("<svg") == 3
    bundle = LoadedBundle.load(market.bundle, check_parity=False)
    first, again = (draw_hour(market, bundle, SETTINGS) for _ in range(2))
    assert first.visits == again.visits
    described = newcomer_values(first, market.raw / "items", bundle)
    assert {first.truth.values["item"][code] for code in described} == {f"i_new_{n}" for n in range(24)}
    assert all(values.keys() == {"category", "brand", "format", "price"} for values in described.values())
    before = clicked_before(first, bundle)
    assert before.keys() == {visit.user for visit in first.visits}
    assert all((items < 120).all() and len(np.unique(items)) == len(items) for items in before.values())
