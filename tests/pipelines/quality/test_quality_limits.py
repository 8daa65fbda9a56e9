from __future__ import annotations

import numpy as np
import pytest

from contracts.config.days import Quality
from contracts.errors import ConfigError
from contracts.features.drift import QUANTILES, ColumnProfile
from pipelines.quality.day_profile import DayProfile
from pipelines.quality.quality_limits import evaluate, sentence


def day(number: int, rows: int = 1000, label_rate: float = 0.1, nulls: float = 0.01, shift: float = 0.0,
        new: int = 0) -> DayProfile:
    draw = np.random.default_rng(number)
    price = np.quantile(draw.normal(shift, 1, 5000), np.linspace(0, 1, QUANTILES))
    columns = {
        "price": ColumnProfile(null_rate=0.0, quantiles=tuple(price)),
        "city": ColumnProfile(null_rate=nulls, keys={"rome": 500, "oslo": 400 - new} | ({"fresh": new} if new else {})),
    }
    return DayProfile(day=f"2026-01-{number:02d}", rows=rows, label_rate=label_rate, columns=columns)


HISTORY = [day(number, rows=1000 + 20 * number) for number in range(1, 8)]
QUIET = Quality()


def refused(today: DayProfile, settings: Quality = QUIET, history=HISTORY) -> list[str]:
    return [one.figure for one in evaluate(today, history, settings) if one.refused]


def test_a_day_like_the_others_passes():
    assert refused(day(8)) == []


@pytest.mark.parametrize(
    ("poison", "figures"),
    [
        ({"rows": 300}, ["rows"]),
        ({"rows": 5000}, ["rows"]),
        ({"label_rate": 0.3}, ["label_rate"]),
        ({"label_rate": 0.0}, ["label_rate"]),
        ({"nulls": 0.2}, ["null_rate.city"]),
        ({"new": 90}, ["psi.city", "churn.city"]),  # new values are a drift, too
        ({"shift": 3.0}, ["psi.price"]),
    ],
)
def test_what_is_poisoned_refuses_and_names_its_column(poison, figures):
    found = [one for one in evaluate(day(8, **poison), HISTORY, QUIET) if one.refused]
    assert [one.figure for one in found] == figures
    for one in found:
        assert one.column in sentence(one)
        assert repr(one.figure) in sentence(one)
        assert one.column or one.figure in ("rows", "label_rate")


def test_without_enough_history_figures_are_shown_and_not_judged():
    found = evaluate(day(3, rows=1), HISTORY[:2], QUIET)
    assert {one.figure for one in found} >= {"rows", "label_rate", "psi.price"}
    assert all(one.high is None for one in found)
    assert not any(one.refused for one in found)


def test_limits_are_learned_a_restless_history_allows_more():
    restless = [day(number, rows=1000 * (1 + number % 4)) for number in range(1, 8)]
    assert refused(day(8, rows=400)) == ["rows"]
    assert refused(day(8, rows=400), history=restless) == []


def test_days_after_the_judged_one_and_too_old_ones_do_not_count():
    wild = [day(number, rows=10) for number in range(9, 20)]
    assert refused(day(8), history=[*HISTORY, *wild]) == []
    old = [day(number, rows=10) for number in range(1, 5)]
    recent = [day(number, rows=1000) for number in range(5, 8)]
    assert refused(day(8, rows=1000), Quality(history_days=3), [*old, *recent]) == []


def test_limits_can_be_overridden():
    assert refused(day(8, rows=300), Quality(limits={"rows": (100, 2000)})) == []
    assert refused(day(8), Quality(limits={"null_rate.city": 0.005})) == ["null_rate.city"]
    assert refused(day(8, nulls=0.2), Quality(limits={"null_rate.city": 0.5})) == []
    assert refused(day(2, nulls=0.2), Quality(limits={"null_rate.city": 0.1}), []) == ["null_rate.city"]


def test_a_limit_of_no_column_is_refused():
    with pytest.raises(ConfigError, match="no such column"):
        evaluate(day(8), HISTORY, Quality(limits={"psi.town": 0.1}))
