"""The demo's DAGs without Airflow: their steps one after the other in this process, by the functions of their commands.

For the figures that gates and watch judge, which hang on neither. What else Airflow does is not played: no tries, no
retention, no verification of the bundle, and no waiting for the server, for which whoever sends visits waits.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.errors import GateRefused
from contracts.release.watch import WatchSummary
from sluice.airflow_demo.demo_world import DemoWorld
from sluice.release import registration, watch
from sluice.release.warm_parent import WarmStartSource
from sluice.release.watch import Watched
from sluice.run import jobs
from sluice.run.bundle_job import build_bundle
from sluice.run.quality_gate import check_quality

WATCH_SECONDS = 60.0
CROSSES = Path("crosses") / "crosses.json"
SEARCH = "weekly_cross_search"
Steps = dict[str, Callable[[], object]]


class LocalRuns:
    """Takes an AirflowApi's place: a run has ended when `trigger` returns, up to its watch, which `wait` does."""

    def __init__(self, world: DemoWorld) -> None:
        self.address = str(world.folder)
        self._world, self._console = world, Console(quiet=True)
        self._states: dict[str, dict[str, str]] = {}
        self._steps: dict[str, Steps] = {}
        self._promoted: dict[str, tuple[Config, Artifacts]] = {}

    def trigger(self, dag: str, day: str, conf: Mapping[str, int | str]) -> str:
        """Runs the DAG over the data of `day` and returns the run's id."""
        config = load(Path(str(conf.get("config", self._world.config_file))))
        search = self._world.runs / "crosses" / day
        out = Artifacts(search if dag == SEARCH else self._world.runs / day)
        run = f"{dag} {day}"
        self._steps[run] = self._searched(config, out, day) if dag == SEARCH else self._daily(run, config, out, day)
        self._run(run)
        return run

    def clear(self, dag: str, run: str, task: str) -> None:
        """All of the run again; `task` is its first."""
        self._run(run)

    def ended(self, dag: str, run: str) -> bool:
        """Always: what is left is the watch."""
        return True

    def wait(self, dag: str, run: str, seconds: float) -> dict[str, str]:
        """The states of the run's tasks, once a bundle that it has promoted has been watched."""
        if run in self._promoted:
            self._watch(*self._promoted.pop(run), self._states[run])
        return self._states[run]

    def _run(self, run: str) -> None:
        """A gate's refusal ends it; any other error is raised."""
        states = self._states[run] = {}
        for name, step in self._steps[run].items():
            try:
                step()
            except GateRefused:
                states[name] = "failed"
                return
            states[name] = "success"

    def _searched(self, config: Config, out: Artifacts, day: str) -> Steps:
        return {"features": lambda: jobs.run_features(config, self._world.days.raw, out, self._console, until=day),
                "search": lambda: jobs.run_crosses(config, out, self._console)}

    def _daily(self, run: str, config: Config, out: Artifacts, day: str) -> Steps:
        uri, console = self._world.registry.uri, self._console
        return {
            "crosses": lambda: self._take_crosses(out),
            "features": lambda: jobs.run_features(config, self._world.days.raw, out, console, until=day),
            "quality": lambda: check_quality(config, out, console),
            "pretrain": lambda: jobs.run_pretrain(config, out, console),
            "train": lambda: jobs.run_train(config, out, console, warm_start=WarmStartSource(registry=uri)),
            "prerank": lambda: jobs.run_prerank(config, out, console),
            "bundle": lambda: build_bundle(config, out, console),
            "register": lambda: registration.register(out.out, uri, "challenger", None),
            "promote": lambda: self._promote(run, config, out),
        }

    def _take_crosses(self, out: Artifacts) -> None:
        found = next((self._world.runs / "crosses").glob(f"*/{CROSSES}"))
        (out.out / CROSSES).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, out.out / CROSSES)

    def _promote(self, run: str, config: Config, out: Artifacts) -> None:
        registration.promote(out.out, self._world.registry.uri, force=False)
        self._promoted[run] = config, out

    def _watch(self, config: Config, out: Artifacts, states: dict[str, str]) -> None:
        """Rolls back where it has to; without visits there is nothing to watch."""
        end, found = time.monotonic() + WATCH_SECONDS, None
        while self._world.answers.exists() and not judged(found) and time.monotonic() < end:
            time.sleep(1)
            found = watch.watch(config, Watched(out.out, self._world.answers, self._world.clicks,
                                                registry=self._world.registry.uri))
        if found is not None and found.reasons:
            registration.rollback(config.name, self._world.registry.uri, found.bundle)
            states["roll_back"] = "success"


def judged(found: WatchSummary | None) -> bool:
    """Whether clicks have been judged."""
    return found is not None and any(figure.name == "predicted_over_observed" for figure in found.figures)
