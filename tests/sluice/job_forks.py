"""Forks `sluice` commands from a process that has imported what they need; see tests/sluice/small_day.py."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

HEAVY = ("torch", "faiss", "pyspark.sql", "mlflow.tracking", "mlflow.models", "sklearn.linear_model",
         "sluice.run.jobs",
         "models.jobs.train_job", "models.cross_search.job", "models.pair_rates.job", "pipelines.jobs.feature_job",
         "sluice.run.prerank_job", "pipelines.jobs.quality_job", "sluice.release.registration", "sluice.release.gate",
         "sluice.release.warm_parent", "models.leakage.leak_check",
         "sqlalchemy", "alembic.command", "mlflow.store.tracking.sqlalchemy_store", "matplotlib.pyplot")


def main(log: str) -> None:
    for name in HEAVY:
        importlib.import_module(name)
    for line in sys.stdin:
        arguments, kill, seconds = json.loads(line)
        print(status(log, arguments, kill, seconds), flush=True)


def status(log: str, arguments: list[str], kill: dict[str, Any] | None, seconds: float | None) -> int:
    child = os.fork()
    if child == 0:
        os.setsid()
        work(log, arguments, kill)
    timer = threading.Timer(seconds or 0.0, kill_group, [child])
    if seconds is not None:
        timer.start()
    found = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    kill_group(child)  # whatever it started
    return found


def work(log: str, arguments: list[str], kill: dict[str, Any] | None) -> None:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = 1
    try:
        from sluice.cli import app

        if kill:
            arm(**kill)
        app(arguments, standalone_mode=False)
        code = 0
    except BaseException as error:
        code = getattr(error, "exit_code", 1)
        print(f"{arguments}: {error!r}", flush=True)
    finally:
        sys.stdout.flush()
        os._exit(code)


def arm(event: str, pattern: str, n: int, after: str) -> None:
    if event == "call":
        sys.setprofile(at_call(pattern, n))
        return
    seen, armed = 0, not after

    def watch(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen, armed
        if name not in (event, "os.rename", "open"):
            return
        text = " ".join(str(one) for one in arguments)
        if armed and name == event and re.search(pattern, text):
            seen += 1
            if seen == n:
                os.killpg(os.getpgrp(), signal.SIGKILL)
        armed = armed or bool(re.search(after, text))

    sys.addaudithook(watch)


def at_call(pattern: str, n: int) -> Any:
    function, _, rest = pattern.partition(" ")
    seen = 0

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal seen
        if event != "call" or not re.search(function, f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"):
            return
        if re.search(rest, " ".join(f"{name}={value}" for name, value in frame.f_locals.items())):
            seen += 1
            if seen == n:
                os.killpg(os.getpgrp(), signal.SIGKILL)

    return watch


def kill_group(child: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
