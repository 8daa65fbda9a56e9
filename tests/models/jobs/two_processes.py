"""`sluice train` by two processes, as torchrun starts them, each with its own copy of the run's folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from contracts.config.config import Config

WORKER = """
import json, os, sys
from pathlib import Path
from contracts.artifacts import Artifacts
from contracts.features.vocabulary import Vocabulary
from contracts.config.config import Config
from models.jobs.train_job import train_models

rank = os.environ["RANK"]
if rank == "1":
    del os.environ["MLFLOW_TRACKING_URI"]  # tracking of the second process would go to its own folder
config, folder = Config.model_validate_json(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
found = train_models(config, Artifacts(folder / rank))
(folder / f"found_{rank}.json").write_text(json.dumps({**found.plain(), "seconds": 0}))
"""


def train_in_two(settings: Config, folder: Path) -> list[dict[str, Any]]:
    """The summaries that both return, without their times; their runs lie in `folder`/0 and `folder`/1."""
    (folder / "worker.py").write_text(WORKER, encoding="utf-8")
    (folder / "config.json").write_text(settings.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               str(folder / "worker.py"), str(folder / "config.json"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"found_{rank}.json").read_text()) for rank in ("0", "1")]
