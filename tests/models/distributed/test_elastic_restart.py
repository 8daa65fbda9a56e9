"""A process that is killed in the middle of a run, again and again: torchrun starts all anew, and the run goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec

KILLS, LONGEST = 2, 400


def processes_of(parent: int) -> list[int]:
    """Its children, by /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
def test_killed_processes_cost_no_more_than_what_came_after_the_checkpoint(
    item_world: Any, spec: FeatureSpec, exact_settings: Train, alone: Any, tmp_path: Path
) -> None:
    spec.write(tmp_path)
    (tmp_path / "settings.json").write_text(exact_settings.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               f"--max-restarts={KILLS}", "--monitor-interval=0.1", str(Path(__file__).with_name("restarted.py")),
               *map(str, (tmp_path, item_world.train.folder, item_world.validation.folder))]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    chance, begin, reached, kills = random.Random(0), time.monotonic(), tmp_path / "batches", 0
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None and time.monotonic() - begin < LONGEST:
            done = len(reached.read_text().split()) if reached.exists() else 0
            if kills < KILLS and done >= (kills + 1) * 10 + chance.randrange(4):
                victims = processes_of(run.pid)
                if len(victims) == 2:
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    kills += 1
            time.sleep(0.02)
        if run.poll() is None:
            run.kill()
    assert run.returncode == 0
    assert kills == KILLS
    losses = json.loads((tmp_path / "losses.json").read_text())
    np.testing.assert_allclose(losses, alone[0], rtol=0, atol=1e-4)
    steps = [*map(int, reached.read_text().split())]
    assert len(steps) < 2 * 2 * len(set(steps)), "it began anew each time"
