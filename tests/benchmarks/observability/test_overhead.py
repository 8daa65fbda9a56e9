"""Ratios are on over off, and the environment is left as it was."""

from __future__ import annotations

import os

import pytest

from benchmarks.observability.overhead import VARIABLES, OverheadFigures, switched_on, variables


def test_ratios_are_on_over_off() -> None:
    found = OverheadFigures(requests=2, p50_off=2.0, p50_on=3.0, p99_off=4.0, p99_on=5.0, cpu_off=1.0, cpu_on=1.1)
    assert found.ratios == pytest.approx({"p50": 1.5, "p99": 1.25, "cpu": 1.1})


def test_variables_hold_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    with variables({"OTEL_TRACES_SAMPLER_ARG": "0.1"}):
        assert "OTEL_TRACES_SAMPLER" not in os.environ
        assert os.environ["OTEL_TRACES_SAMPLER_ARG"] == "0.1"
    assert os.environ["OTEL_TRACES_SAMPLER"] == "always_on"
    assert "OTEL_TRACES_SAMPLER_ARG" not in os.environ


def test_each_part_has_its_variables() -> None:
    assert set(switched_on(("traces", "logs"), "http://c", 0.1)) == set(VARIABLES)
    assert switched_on(("metrics",), "http://c", 0.1) == {}
    assert switched_on(("traces",), "http://c", 0.1)["OTEL_TRACES_SAMPLER_ARG"] == "0.1"
