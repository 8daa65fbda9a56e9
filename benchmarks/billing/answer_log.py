"""The response log beside what callers were told: rows, losses and money, to the row, while workers are killed.

    sluice bench answer_log BUNDLE [--seconds 60] [--rate 50] [--workers 2] [--kill-every 20] [--cost] [--json]

A real `sluice serve --log-answers`, Poisson arrivals, and every so often a SIGKILL for one worker. Callers note every
answer and click on one in ten of the items shown; `sluice bill` sums the log. `--seconds 3600` is the hour.

    unlogged    answered calls without a row of their own; they must be within what the log counts as lost
    twice       request ids with more than one row; must be none
    difference  what the callers' clicks cost by their answers, less the bill and the clicks of the unlogged; must be 0

With `--cost` instead: CPU microseconds that the log takes per request of ten items, on the event loop and in all, at
300 requests a second (with time twenty times as fast), and its bytes per row.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.serving import process_figures
from contracts.config.config import Config
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.proto import sluice_pb2 as pb
from serving.replay import response_history
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.response_log.response_log import FILE_SECONDS, ResponseLog
from serving.response_log.response_record import LOST
from serving.response_log.response_recorder import ResponseRecorder
from serving.stages.funnel import Funnel
from sluice.airflow_demo.steady_load import SteadyLoad
from sluice.demo.background import Background
from sluice.demo.server_process import ServerProcess
from sluice.release.bill import Billed, bill

CLICKS_OF = 0.1
TURNS, A_TURN, TURN_SECONDS, DIFFERENT = 70, 300, 0.05, 50
USERS = 500


@dataclass(frozen=True)
class Click:
    """By a caller, at the price of the answer that it had."""

    request_id: str
    item: str
    clicked: datetime
    price: float


class Callers(SteadyLoad):
    """Each request has an id of its own. `answers` are the ids that were answered, `clicks` what was clicked then."""

    def __init__(self, target: str, users: list[str], per_second: float) -> None:
        super().__init__(target, users, per_second)
        self.answers: list[str] = []
        self.clicks: list[Click] = []
        self._numbers, self._clicks = count(), np.random.default_rng(1)

    def request(self, user: str) -> Any:
        made = super().request(user)
        made.request_id = f"call-{next(self._numbers)}"
        return made

    def answered(self, request: Any, answer: Any) -> None:
        self.answers.append(request.request_id)
        for item in answer.items:
            if self._clicks.random() < CLICKS_OF:
                self.clicks.append(Click(request.request_id, item.item_id, datetime.now(UTC) + timedelta(seconds=1),
                                         item.price))


class Killer(Background):
    """While it is open, one worker of the server in turn is killed every `seconds`."""

    def __init__(self, server: ServerProcess, seconds: float) -> None:
        super().__init__()
        self._server, self._seconds, self.kills = server, seconds, 0

    def work(self) -> None:
        while not self.stop.wait(self._seconds):
            found = process_figures.workers(self._server.process.pid)
            if len(found) > 1:  # the other one answers on
                os.kill(found[self.kills % len(found)], signal.SIGKILL)
                self.kills += 1


def measure(
    bundle: Path, seconds: float, rate: float, workers: int, kill_every: float,
    wait: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    users = FeatureStore.load(bundle / "tables", "users")
    names = [users.key(row) for row in range(min(USERS, len(users)))]
    with tempfile.TemporaryDirectory() as scratch:
        folder, began = Path(scratch), datetime.now(UTC)
        server = ServerProcess(bundle, folder / "server.log", options=(
            "--log-answers", str(folder / "answers"), "--workers", str(workers)))
        try:
            killer: AbstractContextManager[Killer | None] = Killer(server, kill_every) if kill_every else nullcontext()
            callers = Callers(server.target, names, rate)
            with callers, killer as killing:
                wait(seconds)
        finally:
            code = server.stop()
        ResponseLog(folder / "answers").close()  # as the next server looks after those that were killed last
        found = tally(folder, callers, began)
    return {"seconds": seconds, "kills": killing.kills if killing else 0, "exit_code": code, **found}


class _Call:
    """One with time left."""

    def time_remaining(self) -> float:
        return 0.1


def cost(bundle: Path) -> dict[str, float]:
    """Answers of the bundle's own funnel, recorded as the servicer does."""
    loaded = LoadedBundle.load(bundle, check_parity=False)
    funnel, users = Funnel(loaded), min(DIFFERENT, len(loaded.users))
    answers = [funnel.rank(RankQuery(loaded.users.key(row), 10), Deadline(None)) for row in range(users)]
    request = pb.RankRequest(user_id="u_00017", context={
        "device": pb.Value(text="phone"), "hour": pb.Value(integer=7), "placement": pb.Value(text="feed")})
    with tempfile.TemporaryDirectory() as scratch:
        log = ResponseLog(Path(scratch), flush_seconds=TURN_SECONDS, file_seconds=FILE_SECONDS * TURN_SECONDS)
        recorder, began, own = ResponseRecorder(log, loaded.manifest), time.process_time(), 0.0
        for turn in range(TURNS):
            entered = time.thread_time()
            for number in range(A_TURN):
                call = recorder.begin(request, f"r{turn}-{number}", 0.003, _Call())
                call.answered(answers[number % users])
                call.ended(_Call())
            own += time.thread_time() - entered
            time.sleep(TURN_SECONDS)
        log.close()
        spent, rows = time.process_time() - began, TURNS * A_TURN
        files = list(Path(scratch).rglob("*.parquet"))
        size = sum(path.stat().st_size for path in files)
    return {"loop_us": 1e6 * own / rows, "all_us": 1e6 * spent / rows, "files": len(files), "bytes_a_row": size / rows}


def tally(folder: Path, callers: Callers, began: datetime) -> dict[str, Any]:
    """Callers beside the log."""
    rows = response_history.rows(folder / "answers")
    ids = Counter(name for name, status in zip(rows["request_id"].to_pylist(), rows["status"].to_pylist(), strict=True)
                  if status == "OK")
    calls = Counter[str]()
    for status, number in zip(rows["status"].to_pylist(), rows["calls"].to_pylist(), strict=True):
        calls[status] += number
    unlogged = set(callers.answers) - set(ids)
    told = math.fsum(click.price for click in callers.clicks)
    missing = math.fsum(click.price for click in callers.clicks if click.request_id in unlogged)
    billed = _billed(folder, callers.clicks, began)
    files = list((folder / "answers").rglob("*.parquet"))
    return {
        "sent": len(callers.outcomes), "answered": len(callers.answers),
        "codes": dict(Counter(outcome.code.partition(":")[0] for outcome in callers.outcomes)),
        "calls_logged": dict(calls), "unlogged": len(unlogged), "lost": calls[LOST],
        "twice": sum(number > 1 for number in ids.values()), "told": told, "billed": billed,
        "difference": told - missing - billed, "files": len(files), "bytes": sum(path.stat().st_size for path in files),
        "left_over": len(list((folder / "answers").rglob(".answers*"))),
    }


def _billed(folder: Path, clicks: list[Click], began: datetime) -> float:
    (folder / "clicks").mkdir()
    pq.write_table(pa.table({
        "request_id": pa.array([click.request_id for click in clicks], pa.string()),
        "item": pa.array([click.item for click in clicks], pa.string()),
        "clicked": pa.array([click.clicked for click in clicks], pa.timestamp("us", "UTC"))}),
        folder / "clicks" / "part.parquet")
    config = Config.model_validate({
        "name": "bill", "log": {"path": "answers", "user_id": "user", "item_id": "item", "event_time": "time",
                                "request_id": "request_id"},
        "label": {"clicks": {"path": str(folder / "clicks"), "on": ["request_id", "item"], "event_time": "clicked"}},
        "fields": [{"name": "item", "kind": "categorical", "side": "item"}]})
    return bill(config, Billed(folder / "answers", began, datetime.now(UTC) + timedelta(seconds=1))).amount


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="sluice bench answer_log", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=20.0, help="seconds; 0: nobody is killed")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    if given.cost:
        found: dict[str, Any] = cost(given.bundle)
    else:
        found = measure(given.bundle, given.seconds, given.rate, given.workers, given.kill_every)
    for name, value in found.items():
        print(f"{name:<14} {value}")
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
