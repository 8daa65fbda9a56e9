"""Six days of the marketplace under a real Airflow, while the server that follows the champion is asked without end.

    python -m sluice.airflow_demo.six_days [--out DIR] [--events N] [--rate R] [--seed N]

It prints what happened, one JSON line last.

A day begins with its daily_ranking run over the log up to the evening before, and lasts until the next one begins. The
day's visits, what the server answers them and the clicks on it are part of the next run's log: the same visits on any
machine, most of them to the new champion at once, the others at the day's end. Other users come without end, and are in
no log: none of their requests may fail.

    day 4   the log arrives with most devices lost: the quality gate refuses it; it is repaired, and the run goes on
    day 5   somebody has put the wrong ranker into the configuration: the promotion gate refuses its bundle
    day 6   users turn away from what the new champion shows: the watch sees it, and the champion is rolled back
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from contracts.errors import SluiceError
from contracts.summaries import summary
from contracts.summaries.airflow_demo import AirflowDemoSummary, DemoDay
from models.tracking.bundle_registry import CHAMPION
from sluice.airflow_demo.api import AirflowApi, Runs
from sluice.airflow_demo.day_visits import DayVisits
from sluice.airflow_demo.demo_world import DAYS, EVENTS, DemoWorld
from sluice.airflow_demo.one_day import DAILY, DRIFTING, POISONED, WORSE, Day, describe, first_champion
from sluice.airflow_demo.process import AirflowProcess
from sluice.airflow_demo.site_users import SiteUsers
from sluice.demo import demo_folder
from sluice.demo.server_process import ServerProcess
from sluice.forked.warm_process import WarmProcess
from sluice.report.days import write_days


def run_demo(
    folder: Path, events: int, rate: float, console: Console, seed: int | None = None
) -> AirflowDemoSummary:
    """Returns what it writes to FOLDER/summary.json. An earlier demo in the folder gives way."""
    started = time.perf_counter()
    demo_folder.clear(folder)
    with WarmProcess(folder) as warm, AirflowProcess(folder / "airflow", folder / "airflow.log") as airflow:
        world = DemoWorld(folder, events, console, seed)
        airflow.wait()
        console.print(f"Airflow is up: {airflow.api.address}", highlight=False)
        airflow.api.set_variables(world.variables() | {"sluice": str(warm.command)})
        for dag in ("weekly_cross_search", DAILY, "retention"):
            airflow.api.unpause(dag)
        up = time.perf_counter()
        first_champion(world, airflow.api)
        before = time.perf_counter()
        days = _served_days(world, airflow.api, rate)
    result = AirflowDemoSummary(
        days=tuple(days), events=events, rate=rate, start_seconds=round(up - started, 1),
        first_champion_seconds=round(before - up, 1), seconds=round(time.perf_counter() - started, 1))
    summary.write(folder, result)
    console.print(f"days in a table and a plot: {write_days(folder, result)}", highlight=False)
    return result


def _served_days(world: DemoWorld, api: AirflowApi, rate: float) -> list[DemoDay]:
    with served(world) as target:
        api.set_variables({"sluice_serving": target})
        users = SiteUsers(target, rate, world.days.world, world.clicks, world.config.seed)
        with users:
            return [lived(number, world, api, users, target) for number in range(1, DAYS + 1)]


@contextmanager
def served(world: DemoWorld) -> Iterator[str]:
    """HOST:PORT of a server that follows the world's champion and logs its answers."""
    options = ("--registry", world.registry.uri, "--poll-seconds", "1", "--connection-seconds", "5", "--workers", "1",
               "--log-answers", str(world.answers), "--cache", str(world.folder / "server-cache"))
    server = ServerProcess(f"models:/{world.config.name}@{CHAMPION}", world.folder / "server.log", options=options)
    try:
        yield server.target
    finally:
        server.stop()


def lived(number: int, world: DemoWorld, runs: Runs, users: SiteUsers, target: str) -> DemoDay:
    """The day's figures, once it is over."""
    visits = DayVisits(target, world.days.world, world.clicks, world.config.seed, number)
    day = Day(number, world, runs, users, visits)
    users.weekday = visits.weekday = (world.days.settings.start.weekday() + day.log_day) % 7
    figures = day.close(day.run())
    world.say(describe(figures))
    for judged in figures.judged:
        world.say(f"        {judged.sentence}")
    return figures


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/airflow-demo"))
    parser.add_argument("--events", type=int, default=EVENTS, help="impressions of the page's old rule a day")
    parser.add_argument("--rate", type=float, default=5.0, help="requests a second of users in no log")
    parser.add_argument("--seed", type=int, help="of market, visits and models; the example's without it")
    arguments = parser.parse_args(words)
    console = Console(stderr=True, width=160)
    result = run_demo(arguments.out, arguments.events, arguments.rate, console, arguments.seed)
    print(result.model_dump_json(exclude_none=True))
    require_as_planned(result.days)


def require_as_planned(days: Sequence[DemoDay]) -> None:
    """Raises SluiceError when a gate or the watch let something pass, or a request failed."""
    wrong = [f"day {day.day}: {day.failed_requests} failed requests" for day in days if day.failed_requests]
    for day in days:
        as_planned = {
            POISONED: day.refused.startswith("quality") and "delivered again" not in day.refused,
            WORSE: day.refused.startswith("promotion"),
            DRIFTING: bool(day.rolled_back),
        }.get(day.day, not (day.refused or day.rolled_back))
        if not as_planned:
            wrong.append(f"day {day.day}: refused {day.refused!r}, rolled back {day.rolled_back!r}")
    if wrong:
        raise SluiceError("the demo did not go as planned: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
