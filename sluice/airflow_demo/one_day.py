"""One day of the demo: its run under Airflow, its mishap, and the figures of what visitors saw meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from contracts.artifacts import Artifacts
from contracts.errors import SluiceError
from contracts.release import gate, watch
from contracts.release.gate import GateSummary, RankingGain
from contracts.release.watch import WatchFigure, WatchSummary
from contracts.summaries import summary
from contracts.summaries.airflow_demo import DemoDay, Judged
from contracts.summaries.quality import QualitySummary
from pipelines.jobs import quality_job
from sluice.airflow_demo import distances
from sluice.airflow_demo.api import POLL_SECONDS, Runs
from sluice.airflow_demo.day_visits import DayVisits
from sluice.airflow_demo.demo_world import HISTORY, DemoWorld
from sluice.airflow_demo.market_days import read_answers
from sluice.airflow_demo.site_users import SiteUsers
from sluice.airflow_demo.steady_load import DEADLINE_SECONDS
from sluice.release.click_log import read as read_clicks

POISONED, WORSE, DRIFTING = 4, 5, 6
CLICK_DROPOFF = 0.9
RUN_SECONDS, LOG_SECONDS = 1800.0, 60.0
FIRST_SHARE = 2 / 3  # of a day's visits, sent as soon as its champion is served, while the run watches it
WATCH = {"watch_seconds": 12, "watch_every": 4, "pick_up_seconds": 300}
DAILY = "daily_ranking"


@dataclass(frozen=True)
class RunOutcome:
    """Why a gate refused the day, why its champion was rolled back; each empty where that did not happen."""

    refused: str = ""
    rolled_back: str = ""


class Day:
    """One day: its run, what came of it, and the figures of what was answered meanwhile.

    `users` visit all the time, so that a request that fails is seen; the log's next day holds `visits` alone.
    """

    def __init__(self, number: int, world: DemoWorld, api: Runs, users: SiteUsers, visits: DayVisits) -> None:
        self.number, self.world, self.api, self.users, self.visits = number, world, api, users, visits
        self.log_day = HISTORY + number - 1
        self.name = world.days.date(self.log_day)
        self.out = Artifacts(world.runs / self.name)
        self.started, self.first = datetime.now(UTC), len(users.outcomes)
        self.begun, self.before = time.monotonic(), world.champion()
        self._judged: list[Judged] = []

    def run(self) -> RunOutcome:
        """Triggers the run over the log up to the evening before, with the day's mishap, and waits for its end."""
        conf: dict[str, int | str] = {**WATCH}
        if self.number == WORSE:
            worse = self.world.configured(f"day-{self.number}.toml", {"train": {"ranker": "popularity"}})
            conf["config"] = str(worse.resolve())
        if self.number == POISONED:
            self.world.days.poison(self.log_day)
        if self.number == DRIFTING:
            conf["watch_seconds"] = int(RUN_SECONDS)  # it ends with what it waits for
        run = self.api.trigger(DAILY, self.name, conf)
        states = self._visited(run)
        refused = self._refused(states)
        if states["quality"] == "failed":
            self.world.say(f"day {self.number}   {refused}; the champion serves on, the day is delivered again")
            self._judged += distances.of_day(self.out, self.name)
            self.world.days.deliver(self.log_day, *(self.world.last_log or ()))
            self.api.clear(DAILY, run, "features")
            states = self._visited(run)
            again = self._refused(states)
            refused += f"; delivered again, {again}" if again else ""
        return RunOutcome(refused, self._rolled_back(states))

    def _visited(self, run: str) -> dict[str, str]:
        """The run's states at its end; once it has changed the champion, the day's first visits come to that."""
        end = time.monotonic() + RUN_SECONDS
        while not self.api.ended(DAILY, run) and self.world.champion() == self.before:
            if time.monotonic() > end:
                raise SluiceError(f"{DAILY} {run!r} has neither ended nor changed the champion after {RUN_SECONDS:g} "
                                  f"s; look at {self.api.address}")
            time.sleep(POLL_SECONDS)
        champion = self.world.champion()
        if champion != self.before and not self.visits.asked:
            if self.number == DRIFTING:
                self.users.click_dropoff[champion] = self.visits.click_dropoff[champion] = CLICK_DROPOFF
            self.visits.follow(champion)
            self.visits.send(round(self.world.visits * FIRST_SHARE))
        return self.api.wait(DAILY, run, RUN_SECONDS)

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
        """The rest of the visits come to whatever is champion by now; delivers them as the next run's log."""
        champion = self.world.champion()
        self.visits.follow(champion)
        self.visits.send(self.world.visits - len(self.visits.asked))
        requests = self.users.outcomes[self.first:]
        answers = self._answers()
        clicks = read_clicks(self.world.config, self.world.clicks)
        clicks = clicks.rename_columns(["request_id", "item_id", "event_time"])
        self.world.last_log = (answers, clicks)
        rows = self.world.days.deliver(self.log_day + 1, answers, clicks)
        failed = [request for request in requests if request.code != "OK"]
        gain, watched = self._gain(), self._watched()
        return DemoDay(
            day=self.number, log_until=self.name, bundle=champion, refused=outcome.refused,
            rolled_back=outcome.rolled_back, requests=len(requests), failed_requests=len(failed),
            failures=tuple(sorted({request.code for request in failed})),
            served_bundles=tuple(sorted({request.version for request in requests if request.version})),
            visits=answers.num_rows, logged_rows=rows, gain=gain and gain.value, gain_low=gain and gain.low,
            predicted_over_observed=watched and watched.value,
            judged=(*self._judged, *distances.of_day(self.out, self.name),
                    *distances.of_answers([request.seconds for request in requests], DEADLINE_SECONDS)),
            share_of_oracle=round(self.world.days.share_of_oracle(answers), 4),
            seconds=round(time.monotonic() - self.begun, 1),
        )

    def _answers(self) -> pa.Table:
        """To all visits of the day, when the response log holds them. Raises SluiceError where it does not in time."""
        end = time.monotonic() + LOG_SECONDS
        while True:
            found = read_answers(self.world.answers, self.started, datetime.now(UTC), self.visits.asked)
            if found.num_rows == len(self.visits.asked):
                return found
            if time.monotonic() > end:
                raise SluiceError(f"day {self.number}: the response log holds {found.num_rows} of "
                                  f"{len(self.visits.asked)} visits after {LOG_SECONDS:g} s")
            time.sleep(POLL_SECONDS)

    def _gain(self) -> RankingGain | None:
        """Challenger minus champion, as the promotion gate found it."""
        verdict = summary.read(self.out.out / gate.FOLDER, GateSummary)
        return verdict.difference if verdict else None

    def _watched(self) -> WatchFigure | None:
        """Predicted over observed clicks, as the watch saw them last."""
        verdict = summary.read(self.out.out / watch.FOLDER, WatchSummary)
        figures = {figure.name: figure for figure in verdict.figures} if verdict else {}
        return figures.get("predicted_over_observed")


def describe(day: DemoDay) -> str:
    """The day as one line."""
    return (f"day {day.day}   {day.happened}; champion {day.bundle}, {day.requests} requests, "
            f"{day.failed_requests} failed, share of oracle {day.share_of_oracle:.3f}")


def first_champion(world: DemoWorld, api: Runs) -> None:
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
