"""Days, late data, `--until`, quarantine and exact accounting on Apache Spark: every test that is marked `every_engine`
holds in Spark's local mode, too, in one session of a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.engine.session import MASTER
from tests.pipelines.spark_processes import ROOT


@pytest.mark.slow
def test_the_laws_of_every_engine_hold_on_apache_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "every_engine", "-p", "no:cacheprovider",
               "--basetemp", str(tmp_path / "laws"), "--durations", "10", "tests/pipelines"]
    environment = os.environ | {MASTER: "local[2]", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
