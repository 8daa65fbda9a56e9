"""Six days of the marketplace under a real Airflow, while the server that follows the champion is asked without end.

    python -m sluice.airflow_demo.six_days [--out DIR] [--events N] [--rate R]  prints what happened, one JSON line last

A day begins with its daily_ranking run over the log up to the evening before, and lasts until the next one begins. What
the server answers that day, and the clicks on it, are part of the next run's log.

    day 4   the log arrives with most devices lost: the quality gate refuses it; it is repaired, and the run goes on
    day 5   somebody has put the wrong ranker into the configuration: the promotion gate refuses its bundle
    day 6   users turn away from what the new champion shows: the watch sees it, and the champion is rolled back
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.errors import SluiceError
from models.tracking.bundle_registry import CHAMPION, BundleRegistry
from pipelines.jobs import quality_job as quality_step
from sluice.airflow_demo import daily_config
from sluice.airflow_demo.api import AirflowApi
from sluice.airflow_demo.market_days import MarketDays, read_answers
from sluice.airflow_demo.process import AirflowProcess
from sluice.airflow_demo.site_users import SiteUsers
from sluice.demo import demo_folder
from sluice.demo.server_process import ServerProcess
from sluice.release.click_log import read as read_clicks

HISTORY, DAYS = 6, 6
LOG_DAYS = HISTORY + DAYS + 1
POISONED, WORSE, DRIFTING = 4, 5, 6
USERS_PER_EVENT, ITEMS = 10, 1_000
SERVED_SHARE = 0.04  # answers of a day that enter the log, per organic event: eight items each, a quarter of the log
RUN_SECONDS = 1800.0
WEARY = 0.35
DAILY = "daily_ranking"


FIELDS = (
    "age_band", "gender", "city", "occupation", "income_band", "tenure_days", "recent_clicks", "category", "brand",
    "brand_tier", "format", "price", "item_id", "item_clicks", "device", "placement", "hour",
    "weekday",
)


def sections(events: int) -> dict[str, dict[str, Any]]:
    """What differs from examples/marketplace.toml: days that roll, and models small enough for two cores."""
    return {
        "simulation": {"events": events * LOG_DAYS, "days": LOG_DAYS, "items": ITEMS,
                       "users": max(events // USERS_PER_EVENT, 400)},
        "log": {"history": "7d"},
        "label": {"clicks": {"window": "6h"}},
        "windows": {"statistics": 0.2, "train": 0.45, "validation": 0.15, "test": 0.2},
        "spark": {"master": "local[2]", "settings": {
            "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}},  # short jobs: compile less
        "statistics": {"pairs": []},
        "train": {"models": ["popularity", "dnn"], "ranker": "dnn", "epochs": 2, "outside_rows": 0, "tower_epochs": 2},
        "crosses": {"budget": 6, "compare_rows": 0, "epochs": 1, "proposals": 300},
        "prerank": {"requests": 300, "judged_requests": 50, "final_steps": 150, "penalties": [0.03, 0.25, 1.2]},
        "retrieve": {"candidates": 400, "two_tower": 300, "item_to_item": 50, "popularity": 50},
        "serve": {"default_limit": 8},
        "gate": {"margin": 0.012},  # a GAUC of so few rows is known to about 0.007
        "quality": {"psi_floor": 0.5, "limits": {"label_rate": [0.01, 0.3]}},
        "watch": {"click_wait": "3s", "min_answers": 200, "max_p99_ms": 2000.0, "max_p99_ratio": 50.0,
                  "max_miscalibration": 0.6},
    }


class Demo:
    """Everything that runs at once, and what each day's log is made of."""

    def __init__(self, folder: Path, events: int, console: Console) -> None:
        self.folder, self.console = folder, console
        self.config_file = daily_config.write(folder / "daily.toml", sections(events), FIELDS)
        self.config: Config = load(self.config_file)
        assert self.config.simulation is not None
        self.days = MarketDays(self.config.simulation, self.config.seed, folder)
        self.answers, self.clicks, self.runs = folder / "answers", folder / "clicks", folder / "runs"
        self.registry = BundleRegistry(f"sqlite:///{(folder / 'registry.db').resolve()}")
        self.events, self.most_answers = events, round(events * SERVED_SHARE)
        self.last_log: tuple[Any, ...] = ()

    def variables(self) -> dict[str, str]:
        return {
            "sluice_config": str(self.config_file.resolve()), "sluice_data": str(self.days.raw.resolve()),
            "sluice_runs": str(self.runs.resolve()), "sluice_registry": self.registry.uri, "sluice_serving": "",
            "sluice_answers": str(self.answers.resolve()), "sluice_clicks": str(self.clicks.resolve()),
        }

    def champion(self) -> str:
        found = self.registry.by_alias(self.config.name, CHAMPION)
        return found.version if found else ""

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def first_champion(self, api: AirflowApi) -> None:
        """A cross search and a daily run over the history, before anybody visits."""
        day = self.days.date(HISTORY - 1)
        for number in range(HISTORY):
            self.days.deliver(number)
        for dag in ("weekly_cross_search", DAILY):
            wanted(api, dag, day, {})
        self.days.deliver(HISTORY)
        self.say(f"day 0   {self.champion()} is the first champion, from {HISTORY} days of the page's old rule")


def wanted(api: AirflowApi, dag: str, day: str, conf: dict[str, Any]) -> None:
    """A run that must succeed."""
    states = api.wait(dag, api.trigger(dag, day, conf), RUN_SECONDS)
    failed = sorted(task for task, state in states.items() if state == "failed")
    if failed:
        raise SluiceError(f"{dag} of {day} failed in {', '.join(failed)}; look at {api.address}/dags/{dag}")


class Day:
    """One day: its run, what came of it, and the figures of what was answered meanwhile."""

    def __init__(self, number: int, demo: Demo, api: AirflowApi, users: SiteUsers) -> None:
        self.number, self.demo, self.api, self.users = number, demo, api, users
        self.log_day = HISTORY + number - 1
        self.name = demo.days.date(self.log_day)
        self.out = Artifacts(demo.runs / self.name)
        self.started, self.first = datetime.now(UTC), len(users.outcomes)

    def run(self) -> dict[str, Any]:
        """Triggers the run over the log up to the evening before, with the day's mishap, and waits for its end."""
        conf: dict[str, Any] = {"watch_seconds": 60, "watch_every": 5, "pick_up_seconds": 120}
        if self.number == WORSE:
            worse = sections(self.demo.events)["train"] | {"ranker": "popularity"}
            conf["config"] = str(self._config({"train": worse}))
        if self.number == POISONED:
            self.demo.days.poison(self.log_day)
        run = self.api.trigger(DAILY, self.name, conf)
        if self.number == DRIFTING:
            self._turn_away(run)
        states = self.api.wait(DAILY, run, RUN_SECONDS)
        refused = self._refused(states)
        if states["quality"] == "failed":
            self.demo.say(f"day {self.number}   {refused}; the champion serves on, the day is delivered again")
            self.demo.days.deliver(self.log_day, *self.demo.last_log)
            self.api.clear(DAILY, run, "features")
            states = self.api.wait(DAILY, run, RUN_SECONDS)
        return {"refused": refused, "rolled_back": self._rolled_back(states), "states": states}

    def _config(self, changed: dict[str, dict[str, Any]]) -> Path:
        target = self.demo.folder / f"day-{self.number}.toml"
        return daily_config.write(target, sections(self.demo.events) | changed, FIELDS).resolve()

    def _turn_away(self, run: str) -> None:
        """From the moment the new champion is promoted, its slates get a third of the clicks."""
        old, end = self.demo.champion(), time.monotonic() + RUN_SECONDS
        while self.demo.champion() == old:
            if time.monotonic() > end or "failed" in self.api.states(DAILY, run).values():
                return
            time.sleep(0.5)
        self.users.weary[self.demo.champion()] = WEARY

    def _refused(self, states: dict[str, str]) -> str:
        """In the words of the gate; empty where none refused. Raises SluiceError where something else went wrong."""
        failed = [task for task, state in states.items() if state == "failed"]
        if failed == ["quality"]:
            found = summary.read(quality_step.folder_of(self.out, self.name))["refused"]
            return f"quality: {'; '.join(found)}"
        if failed == ["promote"]:
            return f"promotion: {'; '.join(summary.read(self.out.out / 'gate')['reasons'])}"
        if failed:
            raise SluiceError(f"day {self.number}: {', '.join(failed)} failed; look at {self.api.address}/dags/{DAILY}")
        return ""

    def _rolled_back(self, states: dict[str, str]) -> str:
        if states.get("roll_back") != "success":
            return ""
        return "; ".join(summary.read(self.out.out / "watch")["reasons"])

    def close(self, happened: dict[str, Any]) -> dict[str, Any]:
        """The day's figures; delivers what was answered as the next run's log."""
        self.users.flush()
        time.sleep(2)  # the response log is written each second
        until, outcomes = datetime.now(UTC), self.users.outcomes[self.first:]
        answers = read_answers(self.demo.answers, self.started, until, self.demo.most_answers)
        clicks = read_clicks(self.demo.config, self.demo.clicks).rename_columns(["request_id", "item_id", "event_time"])
        self.demo.last_log = (answers, clicks)
        rows = self.demo.days.deliver(self.log_day + 1, answers, clicks)
        failed = [one for one in outcomes if one.code != "OK"]
        return {
            "day": self.number, "log_until": self.name, "bundle": self.demo.champion(),
            "refused": happened["refused"], "rolled_back": happened["rolled_back"], "requests": len(outcomes),
            "failed_requests": len(failed), "failures": sorted({one.code for one in failed}),
            "served_bundles": sorted({one.version for one in outcomes if one.version}), "logged_rows": rows,
            "share_of_oracle": round(self.demo.days.share_of_oracle(answers), 4),
        }


def told(day: dict[str, Any]) -> str:
    happened = (f"promoted, then rolled back: {day['rolled_back']}" if day["rolled_back"] else
                f"refused: {day['refused']}" if day["refused"] else "promoted")
    return (f"day {day['day']}   {happened}; champion {day['bundle']}, {day['requests']} requests, "
            f"{day['failed_requests']} failed, share of oracle {day['share_of_oracle']:.3f}")


def run_demo(folder: Path, events: int, rate: float, console: Console) -> dict[str, Any]:
    """Returns what it writes to FOLDER/summary.json. An earlier demo in the folder gives way."""
    started = time.perf_counter()
    demo_folder.clear(folder)
    demo = Demo(folder, events, console)
    with AirflowProcess(folder / "airflow", folder / "airflow.log") as airflow:
        console.print(f"Airflow is up: {airflow.api.address}", highlight=False)
        airflow.api.set_variables(demo.variables())
        for dag in ("weekly_cross_search", DAILY, "retention"):
            airflow.api.unpause(dag)
        demo.first_champion(airflow.api)
        days = _served_days(demo, airflow.api, rate)
    result = {"days": days, "events": events, "rate": rate, "seconds": round(time.perf_counter() - started, 1)}
    summary.write(folder, result)
    return result


def _served_days(demo: Demo, api: AirflowApi, rate: float) -> list[dict[str, Any]]:
    options = ("--registry", demo.registry.uri, "--poll-seconds", "1", "--connection-seconds", "5",
               "--log-answers", str(demo.answers))
    server = ServerProcess(f"models:/{demo.config.name}@{CHAMPION}", demo.folder / "server.log", options=options)
    try:
        api.set_variables({"sluice_serving": server.target})
        users = SiteUsers(server.target, rate, demo.days.world, demo.clicks, demo.config.seed)
        with users:
            return [_day(number, demo, api, users) for number in range(1, DAYS + 1)]
    finally:
        server.stop()


def _day(number: int, demo: Demo, api: AirflowApi, users: SiteUsers) -> dict[str, Any]:
    day = Day(number, demo, api, users)
    users.weekday = (demo.days.settings.start.weekday() + day.log_day) % 7
    found = day.close(day.run())
    demo.say(told(found))
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/airflow-demo"))
    parser.add_argument("--events", type=int, default=15_000, help="impressions of the page's old rule a day")
    parser.add_argument("--rate", type=float, default=10.0, help="visits a second")
    asked = parser.parse_args(words)
    found = run_demo(asked.out, asked.events, asked.rate, Console(stderr=True, width=160))
    print(json.dumps(found))
    require_as_planned(found["days"])


def require_as_planned(days: Sequence[dict[str, Any]]) -> None:
    """Raises SluiceError when a gate or the watch let something pass, or a request failed."""
    wrong = [f"day {day['day']}: {day['failed_requests']} failed requests" for day in days if day["failed_requests"]]
    for day in days:
        number = day["day"]
        expected = {POISONED: day["refused"].startswith("quality"), WORSE: day["refused"].startswith("promotion"),
                    DRIFTING: bool(day["rolled_back"])}.get(number, not (day["refused"] or day["rolled_back"]))
        if not expected:
            wrong.append(f"day {number}: refused {day['refused']!r}, rolled back {day['rolled_back']!r}")
    if wrong:
        raise SluiceError("the demo did not go as planned: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
