"""The six days of the demo without Airflow: what gates and watch judge, and how far it lies from its limits.

    python -m sluice.airflow_demo.rehearsal [--seeds N N ...] [--out DIR] [--events N]

The same market, visits, configuration, server and verdicts, by the functions of the commands that Airflow would start.
Each seed is another market. One JSON line a day; an error where a day does not go as planned.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from contracts.summaries.airflow_demo import DemoDay
from sluice.airflow_demo.demo_world import DAYS, EVENTS, DemoWorld
from sluice.airflow_demo.local_runs import LocalRuns
from sluice.airflow_demo.one_day import first_champion
from sluice.airflow_demo.site_users import SiteUsers
from sluice.airflow_demo.six_days import lived, require_as_planned, served
from sluice.demo import demo_folder

AT_ONCE = {"watch": {"click_wait": "1s"}}  # no click comes after the last visit


def rehearse(folder: Path, events: int, seed: int | None, console: Console) -> Iterator[DemoDay]:
    """Day by day. An earlier rehearsal in the folder gives way."""
    demo_folder.clear(folder)
    world = DemoWorld(folder, events, console, seed, AT_ONCE)
    runs = LocalRuns(world)
    first_champion(world, runs)
    with served(world) as target:
        nobody = SiteUsers(target, 1.0, world.days.world, world.clicks, world.config.seed)
        for number in range(1, DAYS + 1):
            yield lived(number, world, runs, nobody, target)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/airflow-rehearsal"))
    parser.add_argument("--events", type=int, default=EVENTS, help="impressions of the page's old rule a day")
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="markets; the example's without any")
    arguments = parser.parse_args(words)
    console = Console(stderr=True, width=160)
    for seed in arguments.seeds or [None]:  # each in a folder of its own: the tracker keeps its data base open
        days = []
        for day in rehearse(arguments.out / f"seed-{seed or 'example'}", arguments.events, seed, console):
            days.append(day)
            print(day.model_dump_json(exclude_none=True), flush=True)
        require_as_planned(days)


if __name__ == "__main__":
    main()
