"""Ratios are on over off, and the environment is left as it was."""

from __future__ import annotations

import os

import pytest

from benchmarks.observability.overhead import VARIABLES, Round, figures, switched_on, variables


def test_ratios_are_on_over_off() -> None:
    off = [Round([0.002] * 99 + [0.004], 0.1), Round([0.004] * 99 + [0.008], 0.2)]
    on = [Round([0.003] * 99 + [0.006], 0.11), Round([0.006] * 99 + [0.01], 0.22)]
    found = figures(off, on)
    assert found.requests == 200
    assert found.ratios == pytest.approx({"p50": 1.5, "p99": 1.5, "cpu": 1.1})
    assert found.cpu_on == pytest.approx(1.65)


def test_a_neighbour_that_comes_and_goes_between_rounds_changes_no_ratio_of_those_beside_one_another() -> None:
    slower = [1.0, 3.0, 1.0, 2.0, 1.0]
    found = figures([Round([0.002 * times] * 9, 0.1) for times in slower],
                    [Round([0.003 * times] * 9, 0.102) for times in slower])
    assert (found.p50_paired.low, found.p50_paired.high) == pytest.approx((1.5, 1.5))
    assert found.cpu_paired.value == pytest.approx(1.02)


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
