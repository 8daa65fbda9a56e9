from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

from contracts.summaries.train import EpochFigures
from models.jobs.model_tracking import end_run, log_epochs, start_run
from models.tracking.tracking import Tracker


def test_a_run_holds_settings_losses_by_epoch_and_the_files_that_exist(make_task, monkeypatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "mlflow" else found(name, *a))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    task = make_task()
    with Tracker(task.out.out, "tiny") as tracker:
        run = start_run(replace(task, tracker=tracker), "dnn")
        log_epochs(run)(EpochFigures(epoch=2, train_loss=0.5, validation_loss=0.6, seconds=1.0))
        end_run(task, run, (task.out.out / "missing", task.out.encoding))
    lines = [json.loads(line) for line in (task.out.out / "tracking.jsonl").read_text().splitlines()]
    begin, metrics, folder, spec, end = lines
    assert (begin["name"], begin["settings"]["seed"]) == ("dnn", "3")
    assert begin["settings"]["train.epochs"] == "1"
    assert (metrics["step"], metrics["values"]) == (2, {"train_loss": 0.5, "validation_loss": 0.6, "seconds": 1.0})
    assert folder["path"] == str(task.out.encoding)
    assert spec["path"].endswith("feature_spec.json")
    assert end["status"] == "FINISHED"
