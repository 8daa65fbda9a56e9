from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.pipelines.features import cpu_seconds, family, main, measure, resident
from contracts.artifacts import Artifacts
from contracts.errors import ConfigError
from tests.benchmarks import tiny_market
from tests.benchmarks.printed_figures import all_finite, refuses


def test_a_family_is_a_process_with_all_its_descendants():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert {os.getpid(), child.pid} <= set(family(os.getpid()))
        assert resident(child.pid) > 0
    finally:
        child.communicate(b"\n")
    assert child.pid not in family(os.getpid())


def test_a_process_that_has_ended_takes_nothing():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert (resident(child.pid), cpu_seconds(child.pid), family(child.pid)) == (0, 0.0, [child.pid])


def test_processor_time_grows_with_work():
    before = cpu_seconds(os.getpid())
    sum(range(10_000_000))
    assert cpu_seconds(os.getpid()) > before


def test_a_configuration_without_a_simulation_is_refused(tmp_path):
    plain = tmp_path / "plain.toml"
    plain.write_text('name = "t"\nlog = { path = "p" }\nlabel = { expression = "y" }\n'
                     'fields = [{ name = "a", kind = "categorical", side = "user" }]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="simulation"):
        measure(plain, 0.001, Artifacts(tmp_path), "1g")


def test_a_wrong_option_is_refused():
    assert refuses(main, "--millions", "many")


@pytest.mark.slow
def test_seconds_processor_time_and_memory_of_a_real_run(run):
    (row,) = run.features
    assert all_finite(row)
    assert row["millions"] == tiny_market.EVENTS / 1e6
    assert row["seconds per million"] == pytest.approx(row["seconds"] / row["millions"])
    assert row["CPU seconds per million"] > 0
    assert 0.1 < row["peak GiB"] < 10
    assert Artifacts(run.out).encoding.exists()
