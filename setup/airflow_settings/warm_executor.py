"""Airflow's LocalExecutor, whose workers know before they are forked what every task imports.

A task is a fork of a worker, and what the worker has not imported each task imports anew (airflow.executors
.local_executor, airflow.sdk.execution_time.supervisor of Airflow 3.3).
"""

from __future__ import annotations

import importlib

from airflow.executors.local_executor import LocalExecutor

IMPORTED = (
    "airflow.dag_processing.dagbag", "airflow.sdk.execution_time.supervisor", "airflow.sdk.execution_time.task_runner",
    "jinja2",
)


class WarmExecutor(LocalExecutor):
    """Everything else is LocalExecutor's."""

    def start(self) -> None:
        """Imports, then forks the workers."""
        for name in IMPORTED:
            importlib.import_module(name)
        super().start()
