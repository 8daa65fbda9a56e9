"""Apache Spark as processes on loopback: a standalone cluster of a master and two workers of one core each, and a
server of Spark Connect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
CLASS, SUBMIT = HOME / "bin" / "spark-class", HOME / "bin" / "spark-submit"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
HERE = ("--host", "127.0.0.1", "--webui-port", "0")
SECONDS = 300.0  # of a machine that does much else
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"  # less to compile
QUICK_PROCESSES = {
    "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK_JAVA, "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}
SMALL_SPARK = {  # for small tables: expressions are evaluated as they are, which compiled would take longer
    **QUICK_PROCESSES, "spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextmanager
def cluster(folder: Path, memory: str) -> Iterator[str]:
    """The master's address; `memory` of each worker bounds what its executors may take."""
    with ExitStack() as running:
        told = r"Starting Spark master at (spark://\S+)"
        master = _process(folder, "master", told, CLASS, MASTER, *HERE, "--port", "0")
        address = running.enter_context(master)
        for name in ("worker-1", "worker-2"):
            bounds = ("--cores", "1", "--memory", memory, "--work-dir", str(folder / name))
            worker = _process(folder, name, r"(Successfully registered)", CLASS, WORKER, address, *HERE, *bounds)
            running.enter_context(worker)
        yield address


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a server of Spark Connect whose Python workers find the platform's code."""
    settings = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0",
                "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", **QUICK_PROCESSES}
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    told = r"Spark Connect server started at: \S*?:(\d+)"
    with _process(folder, "connect", told, SUBMIT, "--class", CONNECT, "--master", "local[2]", *options,
                  "spark-internal") as port:
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _process(folder: Path, name: str, told: str, program: Path, *arguments: str) -> Iterator[str]:
    """What its log says of itself; it ends with the block."""
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1", "PYTHONPATH": str(ROOT),
                                "PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}
    log = folder / f"{name}.log"
    with log.open("wb") as written:
        command = [str(program), *arguments]
        process = subprocess.Popen(command, cwd=folder, stdout=written, stderr=written, env=environment)
    try:
        yield _told(log, told, process)
    finally:
        process.terminate()
        process.wait(timeout=SECONDS)


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
