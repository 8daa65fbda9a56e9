"""`sluice train --workers 2` of which a process is killed in mid-run, and which is told to end, takes up its checkpoint
and ends in the bits of a run that nobody disturbed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from contracts.artifacts import WEIGHTS, Artifacts

ROOT = Path(__file__).parents[3]
CONFIG = """
name = "tiny"
seed = 11
log.path = "log"
label.expression = "clicked"
fields = [{{name = "item", kind = "categorical", side = "item"}}]
retrieve.candidates = 20
serve.max_limit = 10

[prerank]
keep = 10
kind = "towers"
hidden = [8]

[train]
models = ["dnn"]
embedding_dim = 4
hidden = [8]
batch_size = 20
epochs = 3
patience = 3
device = "cpu"
tower_dim = 4
tower_hidden = [8]
tower_epochs = 1
lightgbm_rows = 0
checkpoint_minutes = {minutes}
"""


def command(out: Path, minutes: float, *more: str) -> list[str]:
    config = out / f"{minutes:g}.toml"
    config.write_text(CONFIG.format(minutes=minutes), encoding="utf-8")
    return [sys.executable, "-m", "sluice.cli", "train", str(config), "--out", str(out), "--workers", "2", *more]


def environment(out: Path) -> dict[str, str]:
    """Without MLflow, whose data base takes longer to make than all that is trained here."""
    (out / "sitecustomize.py").write_text("import sys\nsys.modules['mlflow'] = None\n", encoding="utf-8")
    alone = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    return {**alone, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{out}{os.pathsep}{ROOT}"}


def trained(out: Path, minutes: float, *more: str) -> None:
    done = subprocess.run(command(out, minutes, *more), env=environment(out), text=True, capture_output=True,
                          timeout=170, check=False)
    assert done.returncode == 0, done.stderr


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()]


def newest(out: Path) -> int:
    """The number of the ranker's newest checkpoint."""
    return max([int(path.name) for path in (out / "models/dnn/checkpoints").glob("[0-9]*")], default=0)


def await_more(process: subprocess.Popen[str], out: Path, checkpoints: int) -> None:
    before, until = newest(out), time.monotonic() + 120
    while newest(out) < before + checkpoints:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.01)


def disturbed(out: Path) -> tuple[int, str, Sequence[int]]:
    """Its exit code, what it said, and the newest checkpoint when a process was killed and when all had ended."""
    with subprocess.Popen(command(out, 1e-9), env=environment(out), text=True, stderr=subprocess.PIPE) as process:
        await_more(process, out, 2)
        os.kill(max(children(process.pid)), signal.SIGKILL)
        killed = newest(out)
        await_more(process, out, 3)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    return process.returncode, said, (killed, newest(out))


@pytest.mark.slow
def test_a_killed_process_and_a_sigterm_leave_no_trace_in_the_weights(make_task, tmp_path: Path) -> None:
    whole = make_task().out.out
    broken = tmp_path / "broken"
    shutil.copytree(whole, broken)
    trained(whole, 60.0)
    code, said, (killed, stopped) = disturbed(broken)
    assert code == 128 + signal.SIGTERM
    assert "of 2 died" in said
    assert "holds a checkpoint, from which `sluice train --resume` goes on" in said
    assert killed < stopped < 3 * 30, "training was to be stopped in its middle"
    trained(broken, 60.0, "--resume")
    for name in ("dnn", "two_tower", "pre_ranker"):
        assert (Artifacts(broken).model(name) / WEIGHTS).read_bytes() == (
            Artifacts(whole).model(name) / WEIGHTS).read_bytes(), name
