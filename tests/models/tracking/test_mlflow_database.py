"""The data base is whole or not there: killed while it is made, made twice, and never made where it is no file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.tracking.bundle_registry import BundleRegistry
from models.tracking.mlflow_database import made

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
def watch(event, arguments):
    if event == "os.link":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
from models.tracking.mlflow_database import made
made(sys.argv[1])
"""


def test_killed_before_it_is_in_place_it_is_not_there_and_the_next_makes_it(tmp_path):
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    done = subprocess.run([sys.executable, "-c", KILLED, uri], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
                          capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "mlflow.db").exists()
    assert BundleRegistry(uri).by_alias("market", "champion") is None
    before = (tmp_path / "mlflow.db").stat()
    assert made(uri) == uri
    assert (tmp_path / "mlflow.db").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1", "postgresql://nobody@127.0.0.1/none"])
def test_another_store_is_left_to_its_owner(uri):
    assert made(uri) == uri
