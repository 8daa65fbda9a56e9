"""A day of the demo against an HTTP server that speaks as Airflow does: what its run came to, and how it is told."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.errors import SluiceError
from contracts.release import gate, watch
from contracts.release.gate import GateSummary
from contracts.release.watch import WatchSummary
from contracts.summaries import summary
from contracts.summaries.quality import QualitySummary
from pipelines.jobs import quality_job
from serving.response_log.response_log import ResponseLog
from sluice.airflow_demo import one_day
from sluice.airflow_demo.api import AirflowApi
from sluice.airflow_demo.day_visits import DayVisits
from sluice.airflow_demo.demo_world import HISTORY, DemoWorld
from sluice.airflow_demo.one_day import CLICK_DROPOFF, DRIFTING, Day, RunOutcome, describe, first_champion
from sluice.airflow_demo.site_users import SiteUsers
from sluice.airflow_demo.steady_load import Outcome
from sluice.airflow_demo.visitors import SHOWN_ITEMS
from tests.sluice.airflow_demo.airflow_page import airflow_page
from tests.sluice.airflow_demo.planned_days import planned_days
from tests.sluice.airflow_demo.ranking_page import ranking_page

GOOD = {"quality": "success", "promote": "success", "watch": "success", "roll_back": "skipped"}


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> DemoWorld:
    """A market of a few hundred impressions a day."""
    return DemoWorld(tmp_path_factory.mktemp("world"), 100, Console(quiet=True))


@pytest.fixture
def users(world) -> SiteUsers:
    """They visit nobody."""
    return SiteUsers("127.0.0.1:1", 1.0, world.days.world, world.clicks, 5)


def visits(world: DemoWorld, number: int, target: str = "127.0.0.1:1") -> DayVisits:
    return DayVisits(target, world.days.world, world.clicks, 5, number)


def outcome(world: DemoWorld, users: SiteUsers, number: int, *states: dict[str, str]) -> tuple[RunOutcome, list]:
    with airflow_page(*states) as page:
        page.run_states = ["success"]
        return Day(number, world, AirflowApi(page.address), users, visits(world, number)).run(), page.requests


def test_the_history_is_searched_and_run_over_before_anybody_visits(world):
    with airflow_page({"features": "success"}) as page:
        page.run_states = ["success"]
        first_champion(world, AirflowApi(page.address))
        triggered = [path for method, path, _ in page.requests if method == "POST"]
        assert triggered == ["dags/weekly_cross_search/dagRuns", "dags/daily_ranking/dagRuns"]
        page.task_states = [{"features": "failed"}]
        with pytest.raises(SluiceError, match="failed in features"):
            first_champion(world, AirflowApi(page.address))
    assert len(list((world.days.raw / "impressions").glob("*.parquet"))) == HISTORY + 1


def test_a_day_that_goes_well_is_neither_refused_nor_rolled_back(world, users):
    assert outcome(world, users, 1, GOOD)[0] == RunOutcome()


def test_a_refused_bundle_is_told_in_the_gates_words(world, users):
    summary.write(world.runs / world.days.date(HISTORY + 1) / gate.FOLDER,
                  GateSummary(challenger="m-2", reasons=("GAUC: worse",)))
    assert outcome(world, users, 2, GOOD | {"promote": "failed"})[0] == RunOutcome(refused="promotion: GAUC: worse")


def test_a_refused_day_is_delivered_again_and_its_run_goes_on(world, users):
    day = world.days.date(HISTORY + 3)
    summary.write(quality_job.folder_of(Artifacts(world.runs / day), day), QualitySummary(
        day=day, history=(), judged=1, refused=("null_rate.device: 0.7",), columns=("device",), figures=()))
    world.days.deliver(HISTORY + 3)
    found, requests = outcome(world, users, 4, GOOD | {"quality": "failed"}, GOOD)
    assert found == RunOutcome(refused="quality: null_rate.device: 0.7")
    cleared = [body["task_ids"] for _, path, body in requests if path.endswith("clearTaskInstances")]
    assert cleared == [["features"]]
    delivered = pq.read_table(world.days.raw / "impressions" / f"part-{HISTORY + 3:03d}.parquet")
    assert delivered["device"].null_count == 0


def test_a_roll_back_is_told_in_the_watchs_words(world, users):
    verdict = WatchSummary(bundle="m-3", since="", until="", answers=9, figures=(), not_judged=(),
                           reasons=("too few clicks",), settings=world.config.watch)
    summary.write(world.runs / world.days.date(HISTORY + 2) / watch.FOLDER, verdict)
    assert outcome(world, users, 3, GOOD | {"roll_back": "success"})[0] == RunOutcome(rolled_back="too few clicks")


def test_the_wrong_ranker_is_put_into_a_configuration_of_its_own(world, users):
    _, requests = outcome(world, users, 5, GOOD)
    conf = next(body["conf"] for method, path, body in requests if path == "dags/daily_ranking/dagRuns")
    assert conf["config"] == str((world.folder / "day-5.toml").resolve())
    assert "popularity" in (world.folder / "day-5.toml").read_text()


def test_any_other_failure_ends_the_demo(world, users):
    with pytest.raises(SluiceError, match="day 1: train failed"):
        outcome(world, users, 1, GOOD | {"train": "failed"})


def test_a_day_ends_with_its_figures_and_the_next_ones_log(world, users):
    log = ResponseLog(world.answers)
    with airflow_page(GOOD) as page, ranking_page(world.days.world[2].values["item"], "m-1", log=log) as site:
        day = Day(1, world, AirflowApi(page.address), users, visits(world, 1, site.target))
        users.outcomes += [Outcome(0.0, "kept", "OK", 0.1, "m-1"), Outcome(0.0, "new", "UNAVAILABLE: gone", 0.1, "")]
        figures = day.close(RunOutcome(refused="quality: nulls"))
    log.close()
    assert (figures.requests, figures.failed_requests, figures.failures) == (2, 1, ("UNAVAILABLE: gone",))
    assert (figures.served_bundles, figures.refused) == (("m-1",), "quality: nulls")
    assert 0 < figures.share_of_oracle < 1
    assert figures.visits == world.visits == 6
    assert figures.logged_rows == world.days.deliver(day.log_day + 1) + world.visits * SHOWN_ITEMS


@pytest.mark.parametrize(("number", "dropped"), [(1, {}), (DRIFTING, {"m-2": CLICK_DROPOFF})])
def test_two_thirds_of_the_visits_come_to_a_new_champion_at_once(world, users, monkeypatch, number, dropped):
    champions = iter(["m-1", "m-1"])
    monkeypatch.setattr(world, "champion", lambda: next(champions, "m-2"))
    with airflow_page(GOOD) as page, ranking_page(world.days.world[2].values["item"], "m-1", "m-2") as site:
        page.run_states = ["running", "running", "running", "success"]
        day = Day(number, world, AirflowApi(page.address), users, visits(world, number, site.target))
        assert day.run() == RunOutcome()
    assert len(day.visits.asked) == 4 == world.visits * 2 // 3
    assert day.visits.click_dropoff == users.click_dropoff == dropped


def test_a_day_refused_twice_says_so(world, users):
    day = world.days.date(HISTORY + 3)
    summary.write(quality_job.folder_of(Artifacts(world.runs / day), day), QualitySummary(
        day=day, history=(), judged=1, refused=("null_rate.device: 0.7",), columns=("device",), figures=()))
    summary.write(world.runs / day / gate.FOLDER, GateSummary(challenger="m-4", reasons=("GAUC: worse",)))
    world.days.deliver(HISTORY + 3)
    found, _ = outcome(world, users, 4, GOOD | {"quality": "failed"}, GOOD | {"promote": "failed"})
    assert found.refused == "quality: null_rate.device: 0.7; delivered again, promotion: GAUC: worse"


def test_a_day_is_one_line_that_says_what_happened():
    lines = [describe(day) for day in planned_days()]
    assert "refused: quality" in lines[3]
    assert "rolled back: clicks" in lines[5]
    assert "promoted; champion m-1, 9 requests, 0 failed" in lines[0]


def test_a_run_that_never_ends_is_not_waited_for_without_end(world, users, monkeypatch):
    asked = iter(["m-0"] * 20)  # then this test fails
    monkeypatch.setattr(one_day, "RUN_SECONDS", 0.0)
    monkeypatch.setattr(one_day, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(world, "champion", lambda: next(asked))
    with airflow_page(GOOD) as page:
        page.run_states = ["running"]
        day = Day(2, world, AirflowApi(page.address), users, visits(world, 2))
        with pytest.raises(SluiceError, match="has neither ended nor changed the champion"):
            day.run()
