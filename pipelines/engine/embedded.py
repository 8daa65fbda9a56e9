"""The embedded engine: Sail, which runs the PySpark API inside this process, without Java (docs/decisions).

One Spark Connect server a process, on a port of the loopback interface that the system chooses; sessions come and go.
Its operators share MEMORY_SHARE of the memory that this process may have: the machine's, or that of its control group.
Sorts and aggregations that exceed their part write temporary files; what a join keeps has to fit, or the step fails and
says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

EMBEDDED = "embedded"
MARK = "spark.sluice.engine"
PREFIX = "sail."
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"  # by which pyspark's functions know on what side they are
MEMORY_SHARE = 0.6
_SERVER_DEFAULTS = {
    "sail.execution.batch_size": "32768",
    "sail.parquet.compression": "snappy",
    "sail.runtime.memory_pool.type": "fair",
    "sail.parquet.file_metadata_cache.type": "none",  # folders are replaced in place
    "sail.parquet.file_statistics_cache.type": "none",
    "sail.spark.session_timeout_secs": str(365 * 86_400),  # else a session that was idle for 15 minutes is gone
}
# Of version 2 and of version 1; the former says "max" where there is no limit, the latter a number beyond any machine.
GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_ALLOCATOR = "MIMALLOC_ARENA_EAGER_COMMIT"  # without it, huge pages: a third of the time went into clearing them
_SERVERS: list[object] = []  # a server ends when nothing refers to it


def embedded_session(options: Mapping[str, str]) -> SparkSession:
    """A session with `options`; those that begin with `sail.` are the server's own, read where it first starts."""
    server = {key: value for key, value in options.items() if key.startswith(PREFIX)}
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{_port(frozenset(server.items()))}").create()
    for key, value in options.items():
        if not key.startswith(PREFIX):
            spark.conf.set(key, value)
    return spark


def stop(spark: SparkSession) -> None:
    """Ends the session; after an embedded one this process may open one on Apache Spark again."""
    spark.stop()
    os.environ.pop(CONNECT_MODE, None)


def is_embedded(spark: SparkSession) -> bool:
    """Whether the session runs on this process's own server."""
    return CONNECT_MODE in os.environ and spark.conf.get(MARK, "") == EMBEDDED


@cache
def _port(settings: frozenset[tuple[str, str]]) -> int:
    for key, value in {**_SERVER_DEFAULTS, _memory_limit()[0]: _memory_limit()[1], **dict(settings)}.items():
        os.environ[variable(key)] = value
    os.environ.setdefault("RUST_LOG", "error")
    os.environ.setdefault(_ALLOCATOR, "0")
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _SERVERS.append(server)
    _, port = server.listening_address
    return int(port)


def variable(key: str) -> str:
    """sail.runtime.memory_pool.type -> SAIL_RUNTIME__MEMORY_POOL__TYPE."""
    return key.upper().replace(".", "__").replace("SAIL__", "SAIL_", 1)


def _memory_limit() -> tuple[str, str]:
    return "sail.runtime.memory_pool.fair.max_size", str(int(memory() * MEMORY_SHARE))


def memory(groups: Sequence[Path] = GROUPS) -> int:
    """Bytes: the machine's, or the least that a control group of these files says, as in a container."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    texts = [file.read_text(encoding="ascii").strip() for file in groups if file.exists()]
    return min([machine, *(int(text) for text in texts if text.isdecimal())])
