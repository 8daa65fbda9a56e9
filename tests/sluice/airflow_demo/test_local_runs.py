"""The demo's DAGs without Airflow: a small market's champion, a day that a gate refuses, and the watch."""

from __future__ import annotations

import pytest
from rich.console import Console

from contracts.config.days import Watch
from contracts.errors import GateRefused
from contracts.release.watch import WatchFigure, WatchSummary
from sluice.airflow_demo import local_runs
from sluice.airflow_demo.demo_world import HISTORY, DemoWorld
from sluice.airflow_demo.local_runs import LocalRuns, judged
from sluice.airflow_demo.one_day import DAILY, first_champion
from sluice.release import registration, watch

TASKS = ("crosses", "features", "quality", "pretrain", "train", "prerank", "bundle", "register", "promote")
ANY_CALIBRATION = {"gate": {"max_miscalibration": 9.0}}  # of so small a day it is what it may be


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> DemoWorld:
    return DemoWorld(tmp_path_factory.mktemp("world"), 100, Console(quiet=True))


@pytest.fixture(autouse=True)
def effortless(request, monkeypatch) -> None:
    """Steps that succeed at once, unless the test is slow."""
    if request.node.get_closest_marker("slow"):
        return
    monkeypatch.setattr(LocalRuns, "_take_crosses", lambda *_: None)
    for name in ("run_features", "run_pretrain", "run_train", "run_prerank"):
        monkeypatch.setattr(local_runs.jobs, name, lambda *_, **__: None)
    for name in ("check_quality", "build_bundle"):
        monkeypatch.setattr(local_runs, name, lambda *_: None)
    for name in ("register", "promote"):
        monkeypatch.setattr(registration, name, lambda *_, **__: None)


def verdict(*reasons: str, clicks: bool = True) -> WatchSummary:
    figure = WatchFigure(name="predicted_over_observed" if clicks else "p99_ms", low=1.0, limit=2.0, against=False,
                         sentence="")
    return WatchSummary(bundle="m-1", since="", until="", answers=9, figures=(figure,), not_judged=(), reasons=reasons,
                        settings=Watch())


def test_what_a_gate_refuses_ends_the_run_and_clear_runs_it_again(world, monkeypatch):
    runs = LocalRuns(world)

    def refuse(*_: object) -> None:
        raise GateRefused("nulls")

    monkeypatch.setattr(local_runs, "check_quality", refuse)
    run = runs.trigger(DAILY, "2026-01-11", {})
    assert runs.ended(DAILY, run)
    assert runs.wait(DAILY, run, 1.0) == {"crosses": "success", "features": "success", "quality": "failed"}
    monkeypatch.setattr(local_runs, "check_quality", lambda *_: None)
    monkeypatch.setattr(local_runs.jobs, "run_pretrain", refuse)
    runs.clear(DAILY, run, "features")
    assert runs.wait(DAILY, run, 1.0)["quality"] == "success"


@pytest.mark.parametrize(("reasons", "rolled"), [((), ()), (("clicks",), ("roll_back",))])
def test_the_watch_looks_until_clicks_are_judged(world, monkeypatch, reasons, rolled):
    looks = iter([verdict(clicks=False), verdict(*reasons)])
    rolled_back = list[str]()
    monkeypatch.setattr(local_runs.time, "sleep", lambda _: None)
    monkeypatch.setattr(watch, "watch", lambda *_: next(looks))
    monkeypatch.setattr(registration, "rollback", lambda _, __, version: rolled_back.append(version))
    world.answers.mkdir(exist_ok=True)
    runs = LocalRuns(world)
    found = runs.wait(DAILY, runs.trigger(DAILY, "2026-01-11", {}), 1.0)
    assert found == dict.fromkeys([*TASKS, *rolled], "success")
    assert (rolled_back, list(looks)) == (["m-1"] if rolled else [], [])


def test_clicks_are_judged_where_they_have_a_figure():
    assert [judged(found) for found in (None, verdict(clicks=False), verdict())] == [False, False, True]


@pytest.mark.slow
def test_a_small_market_has_a_champion_and_its_poisoned_day_is_refused(tmp_path):
    world = DemoWorld(tmp_path, 1_500, Console(quiet=True), changed=ANY_CALIBRATION)
    runs = LocalRuns(world)
    first_champion(world, runs)
    champion = world.champion()
    assert champion.startswith("marketplace-")
    world.days.poison(HISTORY)
    run = runs.trigger(DAILY, world.days.date(HISTORY), {})
    assert runs.wait(DAILY, run, 1.0)["quality"] == "failed"
    assert world.champion() == champion
