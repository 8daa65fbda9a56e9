"""Training that is told to end, or killed, again and again, ends in the bits of training that nobody disturbed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.artifacts import CALIBRATION, TEST_LOGITS, WEIGHTS, Artifacts
from contracts.summaries import summary
from contracts.summaries.train import FitFigures, PreRankerSummary, RankerSummary, TowerSummary
from tests.models.jobs.interrupted import INTERRUPTIONS

ROOT = Path(__file__).parents[3]
KINDS = {"dnn": RankerSummary, "two_tower": TowerSummary, "pre_ranker": PreRankerSummary}


@pytest.fixture
def ended(make_task, tmp_path: Path) -> tuple[Artifacts, Artifacts, list[str]]:
    """OUT undisturbed, OUT of many interruptions, and what each fork said before its status."""
    task = make_task(
        models=["dnn"],
        hidden=[8, 8],
        dropout=0.2,
        batch_size=100,
        epochs=3,
        patience=1,
        ensemble=2,
        schedule="plateau",
        learning_rate=0.02,
        tower_epochs=2,
    )
    (task.out.out / "config.json").write_text(task.config.model_dump_json(), encoding="utf-8")
    for name in ("whole", "broken"):
        shutil.copytree(task.out.out, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.jobs.interrupted", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Artifacts(tmp_path / "whole"), Artifacts(tmp_path / "broken"), done.stdout.splitlines()


def history(out: Artifacts, name: str) -> list[object]:
    found = summary.read(out.model(name), KINDS[name])  # type: ignore[arg-type]
    assert isinstance(found, FitFigures)
    return [entry.model_dump(exclude={"seconds"}) for entry in found.history]


@pytest.mark.slow
def test_interrupted_training_ends_in_the_same_bits(ended: tuple[Artifacts, Artifacts, list[str]]) -> None:
    whole, broken, said = ended
    stops = [line for line in said if not line.lstrip("-").isdigit()]
    statuses = [int(line) for line in said if line.lstrip("-").isdigit()]
    assert statuses == [0, *(1 if kind == signal.SIGTERM else -signal.SIGKILL for _, _, kind, _ in INTERRUPTIONS), 0]
    assert len(stops) == sum(kind == signal.SIGTERM for _, _, kind, _ in INTERRUPTIONS)
    assert all("holds a checkpoint, from which `sluice train --resume` goes on" in line for line in stops)
    for name in KINDS:
        files = (WEIGHTS, CALIBRATION) if name != "dnn" else (WEIGHTS, CALIBRATION, TEST_LOGITS)
        for file in files:
            assert (broken.model(name) / file).read_bytes() == (whole.model(name) / file).read_bytes(), (name, file)
        assert history(broken, name) == history(whole, name)
        assert not [*broken.model(name).glob("checkpoints*")]
