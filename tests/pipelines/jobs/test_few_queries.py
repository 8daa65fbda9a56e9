"""How often a whole run asks the engine: by what tables, keys and clocks there are, not by fields and windows.

On Apache Spark, where a query is some jobs: tests/sluice/test_engines_agree.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from pipelines.jobs.feature_job import make_features
from tests.pipelines.jobs.small_log import bad_row, config, wider, write_log
from tests.pipelines.queries import counted_queries, relations

QUERIES = 30  # of a log with clicks, counters and a sequence


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(write_log(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def plans(spark: SparkSession, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Any]]:
    """Of a whole run into a folder of its own."""
    def of(configured: Config, log: Path = data) -> list[Any]:
        with counted_queries(spark) as found:
            make_features(configured, log, Artifacts(tmp_path_factory.mktemp("out")))
        return found

    return of


@pytest.fixture(scope="module")
def usual(plans: Callable[..., list[Any]]) -> list[Any]:
    return plans(config())


def test_a_run_is_few_queries(usual: list[Any]) -> None:
    assert len(usual) <= QUERIES


def test_more_fields_windows_and_counters_of_a_key_are_no_more_queries(
    plans: Callable[..., list[Any]], usual: list[Any]
) -> None:
    assert len(plans(wider())) == len(usual)


def test_only_a_log_with_bad_rows_has_a_quarantine_to_write(
    plans: Callable[..., list[Any]], usual: list[Any], data: Path, tmp_path: Path
) -> None:
    bad = bad_row(data, tmp_path)
    assert len(plans(config(), bad)) == len(usual) + 1


def test_clicks_are_joined_once_and_nothing_looks_for_those_that_met_no_impression(usual: list[Any]) -> None:
    joins = [join for plan in usual for join in relations(plan, "join")]
    assert len([join for join in joins if list(join.using_columns) == ["_on_id"]]) == 1
    assert not [join for join in joins if "ANTI" in join.JoinType.Name(join.join_type)]
