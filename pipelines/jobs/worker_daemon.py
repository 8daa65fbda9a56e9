"""What forks the Python workers of Apache Spark's local mode, once it has imported what their tasks need.

Spark's own forks first, so that every worker imports NumPy, Arrow and the platform anew. What has threads is
not safe to fork; the imports start none but that of Arrow's allocator, jemalloc, which takes care of forks itself. The
objects that are there then are left out of the garbage collection that a worker does after each task.

    python -m pipelines.jobs.worker_daemon pyspark.worker        as `spark.python.daemon.module` has it started
"""

from __future__ import annotations

import gc

import pyspark.worker
from pyspark.daemon import manager

from pipelines.jobs import feature_job

PREPARED = (pyspark.worker, feature_job)

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
