from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.engine.session import PREPARED_DAEMON
from pipelines.jobs import worker_daemon
from tests.pipelines.spark_processes import ROOT


def test_the_daemon_is_the_one_that_sessions_name() -> None:
    assert PREPARED_DAEMON["spark.python.daemon.module"] == worker_daemon.__name__


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Spark's own daemon forks")
def test_what_is_imported_before_the_fork_starts_no_thread_that_does_not_mind_it() -> None:
    names = "print([task.read_text().strip() for task in Path('/proc/self/task').glob('*/comm')])"
    program = f"from pathlib import Path; import pipelines.jobs.worker_daemon; {names}"
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}  # Spark sets the number of threads of a task
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    threads = [name for name in ast.literal_eval(done.stdout) if name != "jemalloc_bg_thd"]
    assert threads == [Path(sys.executable).name]
