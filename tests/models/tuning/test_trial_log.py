from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from models.tracking import tracking
from models.tracking.tracking import JsonLinesStore, Tracker
from models.tuning import study, workers
from models.tuning.objective import TuningTask
from models.tuning.trial_log import TrialLog, figures


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs go to one JSON object a line, as without MLflow."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda name: None)
    return tmp_path / "tracking.jsonl"


def test_every_trial_is_tracked_once_and_progress_says_the_best(
    make_task: Callable[..., TuningTask], tmp_path: Path, lines: Path
) -> None:
    task, said = make_task(most=2), list[tuple[str, int, int]]()
    for _ in range(2):
        with Tracker(tmp_path, "tiny") as tracker:
            log = TrialLog(task, tracker, task.deadline - 600, lambda *line: said.append(line))
            workers.search(task, 1, log)
            log(study.open_study(task.folder, task.study, 1))
    entries = [json.loads(line) for line in lines.read_text().splitlines()]
    begun = [entry for entry in entries if entry["event"] == "begin"]
    assert [entry["name"] for entry in begun] == ["tune logistic_regression 0", "tune logistic_regression 1"]
    assert begun[0]["settings"]["configured"] == "True"
    assert begun[0]["settings"]["train.learning_rate"] == "1e-06"
    trials = [figures(trial, task) for trial in study.ended(study.open_study(task.folder, task.study, 1))]
    assert said[-1][0] == f"2 trials, best {max(trial.score or 0 for trial in trials):.4f} (logistic_regression)"
    assert said[-1][2] == 600
    assert all(trial.epochs >= 1 and trial.settings["batch_size"] for trial in trials)


def test_store_of_lines_is_what_the_fixture_says(lines: Path) -> None:
    assert JsonLinesStore(lines, "tiny").path == lines
