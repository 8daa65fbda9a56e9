"""A day of data becomes the champion: features ▶ gate ▶ training ▶ bundle ▶ gate ▶ alias ▶ watch ▶ roll-back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from airflow.sdk import Param, chain, dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_dags import run_outputs
from airflow_dags.lateness import due_within
from airflow_dags.platform_assets import CHAMPION, CROSSES, FEATURES
from airflow_dags.rules import OTHER_CONFIG, START, TASKS
from airflow_dags.run_folders import take_crosses
from airflow_dags.run_outputs import OutputError, Registered, answered_version
from airflow_dags.settings import CONFIG, DATA, DAY, OUT, RUNS, every
from airflow_dags.sluice_command import run, setting, sluice

NIGHT = """
The run of a day reads what the log knew when that day ended, and writes to `RUNS/DAY` alone: every task may be cleared
and run again. What is served changes in one task, `promote`, and back in one, `roll_back`.

**Matters at night**

* `roll_back` failed: a champion that should go is still served. At once, by hand:
  `sluice rollback NAME --only VERSION`; the log of `watch` names both.
* `picked_up` failed: the alias has moved and the server has not followed. Its log says why; it refuses a bundle that it
  cannot load, and serves the old one on.
* `watch` failed (not skipped): nobody looks at the new champion. Clear it; in doubt `sluice rollback NAME`.

**Waits until morning: the champion serves on**

* `features`: bring the data that the last line of its log misses, and clear it with what follows.
* `quality` refused (exit code 3): look at `RUNS/DAY/quality/day=DAY/refused.png`. Repair the day and clear `features`
  with what follows it, or widen the limit in the configuration and clear `quality`. Later days wait for it.
* `pretrain`, `train`, `prerank`, `bundle`, `register`: they have been tried three times; read the log, clear the task.
* `verify`: the bundle computes other scores than training did. Never go round it; keep `RUNS/DAY` for whoever mends it.
* `promote` refused (exit code 3): `RUNS/DAY/gate/summary.json` has the reasons; a change that is meant is promoted by
  `sluice promote RUNS/DAY --force`.

A run that is late (deadline alert) leaves yesterday's champion in place: its features are a day older.
"""


@task
def crosses_of_the_week(runs: str, day: str) -> str:
    """Takes what the newest search up to `day` found; returns where it is from."""
    return take_crosses(Path(runs), day)


@task
def picked_up(out: str, limit_seconds: str) -> str:
    """Waits until an answer of the server carries the promoted version, and returns that version."""
    target, version, answered = setting("sluice_serving"), registered(out).version, ""
    if not target:
        raise AirflowSkipException("the Variable sluice_serving is empty: nothing is served, nothing to watch")
    end = time.monotonic() + float(limit_seconds)
    while time.monotonic() < end:
        _, line = run(["rank", "--user", "airflow", "--target", target, "--timeout", "5", "--json"], accepted=(0, 1))
        with read_once():
            answered = answered_version(line)
        if answered == version:
            return version
        time.sleep(2)
    raise AirflowException(f"{target} does not serve {version} after {limit_seconds} s; it answers {answered}")


@task.short_circuit
def watch(words: list[str], version: str, seconds: str, every: str) -> bool:
    """Whether the new champion is to be rolled back; looks again and again for as long as it should be watched."""
    clicks = ["--clicks", setting("sluice_clicks")] if setting("sluice_clicks") else []
    end = time.monotonic() + float(seconds)
    while True:
        code, _ = run([*words, *clicks, "--answers", setting("sluice_answers"), "--bundle", version], accepted=(0, 4))
        if code == 4 or time.monotonic() >= end:
            return code == 4
        time.sleep(float(every))


@task
def roll_back(out: str, version: str) -> None:
    """Makes the version before `version` champion, unless another is champion by now."""
    run(["rollback", registered(out).name, "--only", version])


def registered(out: str) -> Registered:
    """Raises AirflowFailException for a registration that is missing or of another kind."""
    with read_once():
        return run_outputs.registered(Path(out))


@contextmanager
def read_once() -> Iterator[None]:
    """An output that is not what it should be fails at once: a second try would read the same."""
    try:
        yield
    except OutputError as error:
        raise AirflowFailException(str(error)) from None


@dag(
    dag_id="daily_ranking", schedule=every("0 0 * * *"), start_date=START, catchup=False,
    max_active_runs=1, default_args=TASKS, doc_md=NIGHT, dagrun_timeout=timedelta(hours=20), tags=["sluice"],
    deadline=due_within("daily_ranking", timedelta(hours=2)),
    params={
        "config": OTHER_CONFIG,
        "watch_seconds": Param(3600, type="number", minimum=0, description="how long a new champion is watched"),
        "watch_every": Param(300, type="number", minimum=1, description="seconds between two looks"),
        "pick_up_seconds": Param(600, type="number", minimum=1, description="within which the server must follow"),
    },
)
def daily_ranking() -> None:
    of_day = [CONFIG, "--out", OUT]
    features = sluice.override(
        task_id="features", inlets=[CROSSES], outlets=[FEATURES], execution_timeout=timedelta(hours=4)
    )(["features", *of_day, *DATA, "--until", DAY], spark=True)
    quality = sluice.override(task_id="quality", depends_on_past=True)(["quality", *of_day], spark=True)
    pretrain = sluice.override(task_id="pretrain")(["pretrain", *of_day], spark=True)
    train = sluice.override(task_id="train", execution_timeout=timedelta(hours=6))(["train", *of_day])
    prerank = sluice.override(task_id="prerank")(["prerank", *of_day])
    bundle = sluice.override(task_id="bundle")(["bundle", *of_day])
    verify = sluice.override(task_id="verify", retries=0)(["verify", f"{OUT}/bundle"])
    register = sluice.override(task_id="register")(["register", OUT])
    promote = sluice.override(task_id="promote", outlets=[CHAMPION])(["promote", OUT])
    served = picked_up(OUT, "{{ params.pick_up_seconds }}")
    drifted = watch.override(execution_timeout=timedelta(hours=12))(
        ["watch", *of_day, *DATA], served, "{{ params.watch_seconds }}", "{{ params.watch_every }}")
    chain(
        crosses_of_the_week(RUNS, DAY), features, quality, pretrain, train, prerank, bundle, verify, register, promote,
        served, drifted, roll_back(OUT, served),
    )


daily_ranking()
