"""Experiment tracking: settings, metrics per epoch and files of every training run.

With MLflow installed runs go to `MLFLOW_TRACKING_URI`, or else to OUT/mlflow.db with files under OUT/mlartifacts;
without it to OUT/tracking.jsonl, one JSON object a line. All writing is done by one thread in the order of the calls,
so that training does not wait for a data base; `Tracker.close` waits for it and raises what went wrong.

A new SQLite data base is made aside and then put in its place: MLflow makes its tables and migrates them, for seconds,
in the file itself, and a process killed meanwhile would leave half of one that can never be opened again.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from contracts.errors import ConfigError

URI = "MLFLOW_TRACKING_URI"
SQLITE = "sqlite:///"
LONGEST_VALUE = 6000  # what MLflow keeps of a setting; the whole configuration lies in the bundle's manifest


class Store(Protocol):
    """Where runs go. `begin` returns the run's id in the store, by which the other calls name it."""

    def begin(self, name: str, settings: Mapping[str, str]) -> str: ...
    def metrics(self, run: str, values: Mapping[str, float], step: int) -> None: ...
    def artifact(self, run: str, path: Path) -> None: ...
    def end(self, run: str, status: str) -> None: ...


class JsonLinesStore:
    """Files are named, not copied."""

    def __init__(self, path: Path, experiment: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.experiment = path, experiment

    def begin(self, name: str, settings: Mapping[str, str]) -> str:
        run = uuid.uuid4().hex
        self._write(run, event="begin", experiment=self.experiment, name=name, settings=dict(settings))
        return run

    def metrics(self, run: str, values: Mapping[str, float], step: int) -> None:
        self._write(run, event="metrics", step=step, values=dict(values))

    def artifact(self, run: str, path: Path) -> None:
        self._write(run, event="artifact", path=str(path))

    def end(self, run: str, status: str) -> None:
        self._write(run, event="end", status=status)

    def _write(self, run: str, **entry: object) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"run": run, "time": time.time(), **entry}) + "\n")


class MlflowStore:
    """Uses the client alone: no global active run, so that several runs may be open at once."""

    def __init__(self, out: Path, experiment: str) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from mlflow.tracking import MlflowClient

        for name in ("mlflow", "alembic"):  # after the import, which sets them to INFO
            logging.getLogger(name).setLevel(logging.WARNING)
        out.mkdir(parents=True, exist_ok=True)
        chosen = os.environ.get(URI)
        self.client = MlflowClient(with_database(chosen or f"{SQLITE}{out.resolve() / 'mlflow.db'}"))
        found = self.client.get_experiment_by_name(experiment)
        place = None if chosen else (out.resolve() / "mlartifacts").as_uri()
        self.experiment = found.experiment_id if found else self._created(experiment, place)

    def _created(self, experiment: str, place: str | None) -> str:
        from mlflow.exceptions import MlflowException

        try:
            return self.client.create_experiment(experiment, place)
        except MlflowException:  # another process was quicker
            found = self.client.get_experiment_by_name(experiment)
            if found is None:
                raise
            return found.experiment_id

    def begin(self, name: str, settings: Mapping[str, str]) -> str:
        from mlflow.entities import Param

        run = self.client.create_run(self.experiment, run_name=name).info.run_id
        params = [Param(key, value[:LONGEST_VALUE]) for key, value in settings.items()]
        for start in range(0, len(params), 100):  # the most that one call takes
            self.client.log_batch(run, params=params[start : start + 100])
        return run

    def metrics(self, run: str, values: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.client.log_batch(run, metrics=[Metric(name, float(value), now, step) for name, value in values.items()])

    def artifact(self, run: str, path: Path) -> None:
        """A file, or a folder with everything in it."""
        self.client.log_artifact(run, str(path))

    def end(self, run: str, status: str) -> None:
        self.client.set_terminated(run, status)


def with_database(uri: str) -> str:
    """Returns `uri`, whose data base is there afterwards where it is one of SQLite; another process may make it too."""
    path = Path(uri.removeprefix(SQLITE))
    if not uri.startswith(SQLITE) or path.exists():
        return uri
    from mlflow.tracking import MlflowClient

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        fresh, whole = Path(folder, "fresh.db"), Path(folder, "whole.db")
        MlflowClient(tracking_uri=f"{SQLITE}{fresh}").search_experiments(max_results=1)
        with closing(sqlite3.connect(fresh)) as source, closing(sqlite3.connect(whole)) as copy:
            source.backup(copy)
        try:
            os.link(whole, path)
        except OSError:  # made by another meanwhile, or a file system without links
            if not path.exists():
                whole.rename(path)
    return uri


class SilentStore:
    """Of a process that takes part in a training which another one tracks."""

    def begin(self, name: str, settings: Mapping[str, str]) -> str:
        return name

    def metrics(self, run: str, values: Mapping[str, float], step: int) -> None:
        pass

    def artifact(self, run: str, path: Path) -> None:
        pass

    def end(self, run: str, status: str) -> None:
        pass


class TrackedRun:
    """One training run. Values that are None are left out."""

    def __init__(self, tracker: Tracker, name: str, settings: Mapping[str, Any]) -> None:
        self._tracker = tracker
        self._id = tracker.write(lambda store: store.begin(name, flatten(settings)))

    def metrics(self, values: Mapping[str, float | None], step: int = 0) -> None:
        known = {name: float(value) for name, value in values.items() if value is not None}
        self._tracker.write(lambda store: store.metrics(self._id.result(), known, step))

    def artifact(self, path: Path) -> None:
        self._tracker.write(lambda store: store.artifact(self._id.result(), path))

    def end(self, status: str = "FINISHED") -> None:
        self._tracker.forget(self)
        self._tracker.write(lambda store: store.end(self._id.result(), status))


class Tracker:
    """Runs of one experiment. Use as a context: on an error inside, open runs end as FAILED.

    `silent` writes nothing. Raises ConfigError when MLFLOW_TRACKING_URI is set and MLflow is not installed.
    """

    def __init__(self, out: Path, experiment: str, silent: bool = False) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="tracking")
        self._pending: list[Future] = []
        self._open: list[TrackedRun] = []
        kind = _store_kind()
        self._store = cache(lambda: SilentStore() if silent else kind(out, experiment))

    def start(self, name: str, settings: Mapping[str, Any]) -> TrackedRun:
        """Settings may be nested; they are kept flat, as text."""
        run = TrackedRun(self, name, settings)
        self._open.append(run)
        return run

    def write(self, action: Callable[[Store], Any]) -> Future:
        """Queues `action`; the store is opened by the first one."""
        self._pending.append(self._writer.submit(lambda: action(self._store())))
        return self._pending[-1]

    def forget(self, run: TrackedRun) -> None:
        """The run has ended by itself."""
        self._open.remove(run)

    def close(self, status: str = "FINISHED") -> None:
        """Ends what is open and waits for everything written. Raises the first error of the store."""
        self._drain(status)
        for future in self._pending:
            future.result()

    def _drain(self, status: str) -> None:
        for run in list(self._open):
            run.end(status)
        self._writer.shutdown()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._drain("FAILED")


def _store_kind() -> Callable[[Path, str], Store]:
    if importlib.util.find_spec("mlflow") is not None:
        return MlflowStore
    if os.environ.get(URI):
        raise ConfigError(f"{URI} is {os.environ[URI]!r} and MLflow is not installed; "
                          "install the extra `tracking`, or unset the variable")
    return lambda out, experiment: JsonLinesStore(out / "tracking.jsonl", experiment)


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """{"train": {"epochs": 4}} -> {"train.epochs": "4"}."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        flat |= flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: str(value)}
    return flat
