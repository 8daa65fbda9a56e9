"""What every task is given unless it says otherwise."""

from __future__ import annotations

from datetime import UTC, timedelta

from airflow.sdk import DAG

from airflow_dags.rules import OTHER_CONFIG, START, TASKS


def test_tasks_have_the_rules_unless_they_say_otherwise(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        for task in dag.tasks:
            assert task.owner == TASKS["owner"]
            assert task.retries == (0 if task.task_id == "verify" else TASKS["retries"])
            assert task.execution_timeout >= TASKS["execution_timeout"]


def test_a_second_try_waits_longer_and_never_longer_than_the_limit() -> None:
    first, limit, factor = TASKS["retry_delay"], TASKS["max_retry_delay"], TASKS["retry_exponential_backoff"]
    assert isinstance(first, timedelta)
    assert isinstance(limit, timedelta)
    assert isinstance(factor, float)
    assert timedelta() < first < factor * first <= limit


def test_runs_begin_at_a_midnight_of_utc() -> None:
    assert START.tzinfo is UTC
    assert (START.hour, START.minute) == (0, 0)


def test_another_configuration_is_a_text_or_none() -> None:
    assert OTHER_CONFIG.resolve() is None
    assert OTHER_CONFIG.schema["type"] == ["null", "string"]
