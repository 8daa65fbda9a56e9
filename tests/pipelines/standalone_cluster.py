"""A standalone Spark cluster on loopback: a master and two workers of one core each, as processes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
SECONDS = 60.0


@contextmanager
def cluster(folder: Path, memory: str) -> Iterator[str]:
    """The master's address; `memory` of each worker bounds what its executors may take."""
    processes = []
    try:
        master = _start(folder, "master", MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        processes.append(master)
        address = _told(folder / "master.log", r"Starting Spark master at (spark://\S+)", master)
        for name in ("worker-1", "worker-2"):
            worker = _start(folder, name, WORKER, address, "--host", "127.0.0.1", "--cores", "1", "--memory", memory,
                            "--webui-port", "0", "--work-dir", str(folder / name))
            processes.append(worker)
            _told(folder / f"{name}.log", r"(Successfully registered)", worker)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=SECONDS)


def _start(folder: Path, name: str, *command: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen([str(CLASS), *command], stdout=log, stderr=log, env=environment)


def _told(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"no {pattern!r} in {log}:\n{log.read_text(errors='replace')[-2000:]}")
