"""The session that every job of the pipelines runs in: on the embedded engine, or on Apache Spark; UTC, ANSI, quiet.

    embedded                                     in this process, without Java (pipelines/engine/embedded.py)
    local[N], spark://, yarn, k8s://, sc://      Apache Spark; an empty master leaves the choice to spark-submit

Nothing here or elsewhere in pipelines/ touches the SparkContext, so that the same code runs on Spark Connect.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contracts.config.log import SparkSettings
from contracts.errors import SluiceError
from pipelines.engine import embedded
from pipelines.engine.failures import out_of_memory, said_by_workers
from pipelines.engine.local_java import QUICK, archived_classes, check_java

MASTER = "SLUICE_SPARK_MASTER"
CONNECT = "sc://"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# What the results depend on; settings of the configuration cannot change these.
FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # `day` stays text
}
DEBUGGING = "spark.python.sql.dataFrameDebugging.enabled"
DEFAULTS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    DEBUGGING: "false",  # looks for a notebook at every call, for the line of it
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
LOCAL_DEFAULTS = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 1)),
    "spark.ui.enabled": "false",
    "spark.sql.broadcastTimeout": "36000",  # seconds: what is sent may take as long to count as what is sorted
    "spark.sql.constraintPropagation.enabled": "false",  # planning of wide tables: what it infers filters few rows
    "spark.sql.ui.explainMode": "simple",  # the text of every plan, which listeners are told
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),  # no limit: another adds all columns up at every row
}
# Linux alone is known to fork a process that has imported NumPy and Arrow as if it were fresh.
PREPARED_DAEMON = {"spark.python.daemon.module": "pipelines.jobs.worker_daemon"} if sys.platform == "linux" else {}
BESIDE_ROWS = 6_000_000  # of a log that leaves room in memory for other work beside its own
T = TypeVar("T")


@contextmanager
def session(settings: SparkSettings, name: str, leaves_classes: bool = False) -> Iterator[SparkSession]:
    """The active session, or one that is opened for the purpose and stopped at the end. `leaves_classes`: whether the
    body uses most of Spark's, so that a Java of local mode may keep them for later sessions.

    Raises SluiceError where a Python worker says that it lacks the platform's code or files, and where the embedded
    engine has not enough memory.
    """
    active = SparkSession.getActiveSession()
    spark = active or open_session(settings, name, leaves_classes)
    try:
        yield spark
    except (PySparkException, Py4JJavaError) as error:
        known = said_by_workers(error) or out_of_memory(error)
        if known is None:
            raise
        raise known from error
    finally:
        if active is None:
            embedded.stop(spark)


@contextmanager
def beside(work: Callable[[], T], room: bool = True) -> Iterator[Callable[[], T]]:
    """What waits for the result of `work`, which a session does beside the body. `room`: whether memory has room for
    both; else it is done when it is asked for.
    """
    if not room:
        yield work
        return
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(work).result


def open_session(settings: SparkSettings, name: str, leaves_classes: bool = False) -> SparkSession:
    """The session as configured; an empty master leaves master and deployment to spark-submit.

    Raises SluiceError when there is no Java to run Apache Spark on, or when a setting contradicts what results depend
    on.
    """
    settings = reached(settings)
    options = session_options(settings)
    if settings.master == embedded.EMBEDDED:
        return embedded.embedded_session(options)
    os.environ.pop(embedded.CONNECT_MODE, None)
    if settings.master.startswith("local"):
        archive = archived_classes(check_java(), leaves_classes)
        if JAVA_OPTIONS not in settings.settings:
            options[JAVA_OPTIONS] = f"{options[JAVA_OPTIONS]} {archive}".rstrip()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers of this machine run this Python
    builder = SparkSession.builder.appName(name)
    if settings.master.startswith(CONNECT):
        builder = builder.remote(settings.master)
    elif settings.master:
        builder = builder.master(settings.master)
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def reached(settings: SparkSettings) -> SparkSettings:
    """The environment's SLUICE_SPARK_MASTER, where it is set, takes the place of the configured master."""
    return settings.model_copy(update={"master": os.environ.get(MASTER, settings.master)})


def is_local(spark: SparkSession) -> bool:
    """Whether the session is Apache Spark inside this process: whose files are this machine's."""
    return embedded.CONNECT_MODE not in os.environ and str(spark.conf.get("spark.master", "")).startswith("local")


def session_options(settings: SparkSettings) -> dict[str, str]:
    """Defaults, then the configured settings, then what is fixed. Raises SluiceError on a contradiction."""
    for key, value in FIXED.items():
        found = settings.settings.get(key, value)
        if found.lower() != value.lower():
            raise SluiceError(
                f"spark.settings has {key} = {found!r}, Sluice's results need {value!r}; remove the setting"
            )
    if settings.master == embedded.EMBEDDED:
        debugging = {DEBUGGING: DEFAULTS[DEBUGGING]}
        return {**debugging, **_embedded_settings(settings), **FIXED, embedded.MARK: embedded.EMBEDDED}
    if settings.master.startswith(CONNECT):  # whoever started the server has chosen the rest
        defaults = {key: value for key, value in DEFAULTS.items() if key.startswith("spark.sql.")}
        return {**defaults, **settings.settings, **FIXED}
    local = LOCAL_DEFAULTS | PREPARED_DAEMON | _local_paths() if settings.master.startswith("local") else {}
    return {**DEFAULTS, **local, **settings.settings, **FIXED}


def _embedded_settings(settings: SparkSettings) -> dict[str, str]:
    """Settings of Apache Spark's machinery (memory, partitions, packages) mean nothing here and are left out."""
    return {key: value for key, value in settings.settings.items() if key.startswith((embedded.PREFIX, "spark.sql."))}


def _local_paths() -> dict[str, str]:
    """Local sessions keep their warehouse out of the working folder and log errors alone, from the first line on."""
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.sql.warehouse.dir": str(Path(gettempdir()) / "sluice-warehouse"),
        JAVA_OPTIONS: f"-Dlog4j2.configurationFile={quiet} {QUICK}",
    }
