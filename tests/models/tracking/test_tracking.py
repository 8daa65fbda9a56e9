from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from models.tracking import tracking
from models.tracking.bundle_registry import BundleRegistry
from models.tracking.tracking import Tracker, flatten, with_database

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
def watch(event, arguments):
    if event == "os.link":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
from models.tracking.tracking import with_database
with_database(sys.argv[1])
"""


@pytest.fixture
def without_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "mlflow" else found(name, *a))
    monkeypatch.delenv(tracking.URI, raising=False)


def lines(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "tracking.jsonl").read_text().splitlines()]


def test_without_mlflow_runs_become_json_lines(without_mlflow, tmp_path) -> None:
    with Tracker(tmp_path / "out", "marketplace") as tracker:
        run = tracker.start("dnn", {"train": {"epochs": 2}, "seed": 7})
        run.metrics({"loss": 0.5, "gauc": None}, step=1)
        run.artifact(tmp_path / "weights.safetensors")
        run.end()
    begin, metrics, artifact, end = lines(tmp_path / "out")
    assert (begin["experiment"], begin["name"]) == ("marketplace", "dnn")
    assert begin["settings"] == {"train.epochs": "2", "seed": "7"}
    assert (metrics["values"], metrics["step"]) == ({"loss": 0.5}, 1)
    assert artifact["path"].endswith("weights.safetensors")
    assert end["status"] == "FINISHED"
    assert len({entry["run"] for entry in (begin, metrics, artifact, end)}) == 1


def test_an_error_ends_open_runs_as_failed_and_comes_through(without_mlflow, tmp_path) -> None:
    def train() -> None:
        with Tracker(tmp_path, "e") as tracker:
            tracker.start("dnn", {})
            raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        train()
    assert [entry.get("status") for entry in lines(tmp_path)] == [None, "FAILED"]


def test_an_error_of_the_store_comes_out_at_close(without_mlflow, tmp_path) -> None:
    (tmp_path / "file").touch()
    tracker = Tracker(tmp_path / "file", "e")
    tracker.start("dnn", {})
    with pytest.raises(FileExistsError):
        tracker.close()


def test_nothing_is_written_when_nothing_runs(without_mlflow, tmp_path) -> None:
    with Tracker(tmp_path, "e"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_tracking_server_without_mlflow_is_refused(without_mlflow, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(tracking.URI, "http://localhost:5000")
    with pytest.raises(ConfigError, match="MLflow is not installed"):
        Tracker(tmp_path, "e")


def test_settings_are_flattened_by_dots() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": (2, 3)}, "e": None}) == {"a.b.c": "1", "a.d": "(2, 3)", "e": "None"}


@pytest.mark.slow
def test_mlflow_keeps_settings_metrics_and_files(monkeypatch, tmp_path) -> None:
    mlflow = pytest.importorskip("mlflow.tracking")
    monkeypatch.delenv(tracking.URI, raising=False)
    (tmp_path / "weights").write_text("w")
    with Tracker(tmp_path, "marketplace") as tracker:
        for name in ("dnn", "dcn_v2"):
            run = tracker.start(name, {f"key{i}": i for i in range(120)})
            run.metrics({"loss": 0.5}, step=1)
            run.metrics({"loss": 0.25}, step=2)
            run.artifact(tmp_path / "weights")
            run.end()
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("marketplace")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["dcn_v2", "dnn"]
    for run in runs:
        assert run.data.params == {f"key{i}": str(i) for i in range(120)}
        assert [m.value for m in client.get_metric_history(run.info.run_id, "loss")] == [0.5, 0.25]
        assert (tmp_path / "mlartifacts" / run.info.run_id / "artifacts" / "weights").read_text() == "w"
        assert run.info.status == "FINISHED"
    with Tracker(tmp_path, "marketplace") as tracker:
        tracker.start("again", {}).end()
    assert len(client.search_runs([experiment.experiment_id])) == 3


@pytest.mark.slow
def test_killed_before_it_is_in_place_it_is_not_there_and_the_next_makes_it(tmp_path):
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    done = subprocess.run([sys.executable, "-c", KILLED, uri], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
                          capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "mlflow.db").exists()
    assert BundleRegistry(uri).by_alias("market", "champion") is None
    before = (tmp_path / "mlflow.db").stat()
    assert with_database(uri) == uri
    assert (tmp_path / "mlflow.db").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1", "postgresql://nobody@127.0.0.1/none"])
def test_another_store_is_left_to_its_owner(uri):
    assert with_database(uri) == uri
