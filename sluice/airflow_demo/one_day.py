"""One day of the demo: its run under Airflow, its mishap, and the figures of what visitors saw meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.errors import SluiceError
from contracts.release import gate, watch
from contracts.release.gate import GateSummary
from contracts.release.watch import WatchSummary
from contracts.summaries import summary
from contracts.summaries.airflow_demo import DemoDay
from contracts.summaries.quality import QualitySummary
from pipelines.jobs import quality_job
from sluice.airflow_demo import daily_config
from sluice.airflow_demo.api import AirflowApi
from sluice.airflow_demo.demo_world import FIELDS, HISTORY, DemoWorld, Sections, sections
from sluice.airflow_demo.market_days import read_answers
from sluice.airflow_demo.site_users import SiteUsers
from sluice.release.click_log import read as read_clicks

POISONED, WORSE, DRIFTING = 4, 5, 6
CLICK_DROPOFF = 0.65
RUN_SECONDS = 1800.0
DAILY = "daily_ranking"


@dataclass(frozen=True)
class RunOutcome:
    """Why a gate refused the day, why its champion was rolled back; each empty where that did not happen."""

    refused: str = ""
    rolled_back: str = ""


class Day:
    """One day: its run, what came of it, and the figures of what was answered meanwhile."""

    def __init__(self, number: int, world: DemoWorld, api: AirflowApi, users: SiteUsers) -> None:
        self.number, self.world, self.api, self.users = number, world, api, users
        self.log_day = HISTORY + number - 1
        self.name = world.days.date(self.log_day)
        self.out = Artifacts(world.runs / self.name)
        self.started, self.first = datetime.now(UTC), len(users.outcomes)

    def run(self) -> RunOutcome:
        """Triggers the run over the log up to the evening before, with the day's mishap, and waits for its end."""
        conf: dict[str, int | str] = {"watch_seconds": 60, "watch_every": 5, "pick_up_seconds": 120}
        if self.number == WORSE:
            worse = sections(self.world.events)["train"] | {"ranker": "popularity"}
            conf["config"] = str(self._config({"train": worse}))
        if self.number == POISONED:
            self.world.days.poison(self.log_day)
        run = self.api.trigger(DAILY, self.name, conf)
        if self.number == DRIFTING:
            self._turn_away(run)
        states = self.api.wait(DAILY, run, RUN_SECONDS)
        refused = self._refused(states)
        if states["quality"] == "failed":
            self.world.say(f"day {self.number}   {refused}; the champion serves on, the day is delivered again")
            self.world.days.deliver(self.log_day, *(self.world.last_log or ()))
            self.api.clear(DAILY, run, "features")
            states = self.api.wait(DAILY, run, RUN_SECONDS)
        return RunOutcome(refused, self._rolled_back(states))

    def _config(self, changed: Sections) -> Path:
        target = self.world.folder / f"day-{self.number}.toml"
        return daily_config.write(target, sections(self.world.events) | changed, FIELDS).resolve()

    def _turn_away(self, run: str) -> None:
        """From the moment the new champion is promoted, its slates get a third of the clicks."""
        old, end = self.world.champion(), time.monotonic() + RUN_SECONDS
        while self.world.champion() == old:
            if time.monotonic() > end or "failed" in self.api.states(DAILY, run).values():
                return
            time.sleep(0.5)
        self.users.click_dropoff[self.world.champion()] = CLICK_DROPOFF

    def _refused(self, states: dict[str, str]) -> str:
        """In the words of the gate; empty where none refused. Raises SluiceError where something else went wrong."""
        failed = [task for task, state in states.items() if state == "failed"]
        if failed == ["quality"]:
            quality = summary.required(
                quality_job.folder_of(self.out, self.name), QualitySummary, "sluice quality")
            return f"quality: {'; '.join(quality.refused)}"
        if failed == ["promote"]:
            verdict = summary.required(self.out.out / gate.FOLDER, GateSummary, "sluice promote")
            return f"promotion: {'; '.join(verdict.reasons)}"
        if failed:
            raise SluiceError(f"day {self.number}: {', '.join(failed)} failed; look at {self.api.address}/dags/{DAILY}")
        return ""

    def _rolled_back(self, states: dict[str, str]) -> str:
        if states.get("roll_back") != "success":
            return ""
        return "; ".join(summary.required(self.out.out / watch.FOLDER, WatchSummary, "sluice watch").reasons)

    def close(self, outcome: RunOutcome) -> DemoDay:
        """The day's figures; delivers what was answered as the next run's log."""
        self.users.flush()
        time.sleep(2)  # the response log is written each second
        until, requests = datetime.now(UTC), self.users.outcomes[self.first:]
        answers = read_answers(self.world.answers, self.started, until, self.world.most_answers)
        clicks = read_clicks(self.world.config, self.world.clicks)
        clicks = clicks.rename_columns(["request_id", "item_id", "event_time"])
        self.world.last_log = (answers, clicks)
        rows = self.world.days.deliver(self.log_day + 1, answers, clicks)
        failed = [request for request in requests if request.code != "OK"]
        return DemoDay(
            day=self.number, log_until=self.name, bundle=self.world.champion(), refused=outcome.refused,
            rolled_back=outcome.rolled_back, requests=len(requests), failed_requests=len(failed),
            failures=tuple(sorted({request.code for request in failed})),
            served_bundles=tuple(sorted({request.version for request in requests if request.version})),
            logged_rows=rows, share_of_oracle=round(self.world.days.share_of_oracle(answers), 4),
        )


def describe(day: DemoDay) -> str:
    """The day as one line."""
    happened = (f"promoted, then rolled back: {day.rolled_back}" if day.rolled_back else
                f"refused: {day.refused}" if day.refused else "promoted")
    return (f"day {day.day}   {happened}; champion {day.bundle}, {day.requests} requests, "
            f"{day.failed_requests} failed, share of oracle {day.share_of_oracle:.3f}")


def first_champion(world: DemoWorld, api: AirflowApi) -> None:
    """A cross search and a daily run over the history, before anybody visits. Raises SluiceError where one fails."""
    day = world.days.date(HISTORY - 1)
    for number in range(HISTORY):
        world.days.deliver(number)
    for dag in ("weekly_cross_search", DAILY):
        states = api.wait(dag, api.trigger(dag, day, {}), RUN_SECONDS)
        failed = sorted(task for task, state in states.items() if state == "failed")
        if failed:
            raise SluiceError(f"{dag} of {day} failed in {', '.join(failed)}; look at {api.address}/dags/{dag}")
    world.days.deliver(HISTORY)
    world.say(f"day 0   {world.champion()} is the first champion, from {HISTORY} days of the page's old rule")
