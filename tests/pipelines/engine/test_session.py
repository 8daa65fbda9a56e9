from __future__ import annotations

import os
import threading

import pytest
from pyspark.sql import SparkSession

from contracts.config.log import SparkSettings
from contracts.errors import SluiceError
from pipelines.engine.embedded import EMBEDDED, is_embedded
from pipelines.engine.local_java import QUICK
from pipelines.engine.session import (
    DEFAULTS,
    FIXED,
    LOCAL_DEFAULTS,
    MASTER,
    beside,
    is_local,
    reached,
    session_options,
)


@pytest.mark.every_engine
def test_the_engine_is_the_one_that_the_environment_names(spark: SparkSession) -> None:
    named = os.environ.get(MASTER, EMBEDDED)
    assert is_embedded(spark) == (named == EMBEDDED)
    assert is_local(spark) == named.startswith("local")


@pytest.mark.every_engine
def test_the_running_session_has_what_results_depend_on(spark: SparkSession) -> None:
    assert {key: spark.conf.get(key) for key in FIXED} == FIXED
    assert spark.sql("select timestamp'2026-01-05 00:00:00' = timestamp'2026-01-05T00:00:00Z'").collect()[0][0]
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|Cannot cast"):
        spark.sql("select cast('x' as int)").collect()


def test_work_beside_goes_on_meanwhile_and_fails_where_it_is_waited_for(spark: SparkSession) -> None:
    going, told = threading.Event(), threading.Event()

    def work() -> int:
        going.set()
        assert told.wait(60)
        return spark.range(3).count()

    with beside(work) as done:
        assert going.wait(60)
        told.set()
        assert done() == 3
    with beside(lambda: 1 // 0) as failed, pytest.raises(ZeroDivisionError):
        failed()


def test_work_without_room_beside_is_done_where_it_is_waited_for() -> None:
    with beside(threading.get_ident, room=False) as done:
        assert done() == threading.get_ident()
    with beside(threading.get_ident) as done:
        assert done() != threading.get_ident()


def test_an_empty_master_leaves_deployment_to_spark_submit() -> None:
    assert session_options(SparkSettings(master="")) == {**DEFAULTS, **FIXED}
    assert LOCAL_DEFAULTS.keys() <= session_options(SparkSettings(master="local[*]")).keys()


def test_local_mode_compiles_quickly_and_a_setting_of_ones_own_takes_its_place() -> None:
    java = "spark.driver.extraJavaOptions"
    assert session_options(SparkSettings(master="local[2]"))[java].endswith(QUICK)
    assert session_options(SparkSettings(master="local[2]", settings={java: "-Xint"}))[java] == "-Xint"
    assert java not in session_options(SparkSettings(master="spark://master:7077"))


def test_local_mode_waits_hours_for_what_it_broadcasts() -> None:
    assert int(session_options(SparkSettings(master="local[2]"))["spark.sql.broadcastTimeout"]) >= 3600


def test_a_server_of_spark_connect_keeps_what_its_owner_chose() -> None:
    options = session_options(SparkSettings(master="sc://host:15002", settings={"spark.sql.shuffle.partitions": "9"}))
    assert all(key.startswith("spark.sql.") for key in options)
    assert options.items() >= {"spark.sql.shuffle.partitions": "9", **FIXED}.items()


def test_the_embedded_engine_takes_its_own_settings_alone() -> None:
    given = {"spark.executor.memory": "9g", "spark.sql.shuffle.partitions": "3", "sail.execution.batch_size": "4096"}
    options = session_options(SparkSettings(settings=given))
    assert "spark.executor.memory" not in options
    assert options.items() >= {"sail.execution.batch_size": "4096", **FIXED}.items()


@pytest.mark.parametrize("master", ["spark://master:7077", ""])
def test_the_environment_names_another_master(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    assert reached(SparkSettings()).master == "embedded"
    monkeypatch.setenv("SLUICE_SPARK_MASTER", master)
    assert reached(SparkSettings(settings={"a": "b"})) == SparkSettings(master=master, settings={"a": "b"})


def test_settings_win_over_defaults_but_not_over_what_is_fixed() -> None:
    local = SparkSettings(master="local[*]", settings={"spark.driver.memory": "9g"})
    assert session_options(local)["spark.driver.memory"] == "9g"
    with pytest.raises(SluiceError, match=r"timeZone = 'Europe/Berlin'.*need 'UTC'; remove"):
        session_options(SparkSettings(settings={"spark.sql.session.timeZone": "Europe/Berlin"}))
