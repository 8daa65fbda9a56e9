from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import parse
from contracts.features.found_crosses import FoundCross, FoundCrosses
from contracts.windows import TimedWindows
from pipelines.cooccurrence.chosen_pairs import chosen_pairs

START, END = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)

TEXT = """
name = "t"
[log]
path = "p"
event_time = "t"
[label]
expression = "y"
[pair_rates]
{}
[[fields]]
name = "city"
kind = "categorical"
side = "user"
[[fields]]
name = "brand"
kind = "categorical"
side = "item"
[[fields]]
name = "format"
kind = "categorical"
side = "item"
"""


@pytest.fixture
def out(tmp_path):
    found = Artifacts(tmp_path)
    parts = [("city", "brand", "format"), ("city", "format"), ("city", "format"), ("brand", "format")]
    crosses = tuple(FoundCross(name="x", parts=one, importance=1.0, gain=1.0, support=1) for one in parts)
    FoundCrosses(digest="d", crosses=crosses).write(found.crosses)
    TimedWindows(spans={"statistics": (START, END), "train": (END, END.replace(day=8))}).write(found.windows)
    return found


def test_crosses_of_order_two_are_taken_each_once(out):
    assert chosen_pairs(parse(TEXT.format("")), out) == [("city", "format"), ("brand", "format")]


def test_configured_pairs_go_before_crosses(out):
    assert chosen_pairs(parse(TEXT.format('pairs = [["city", "brand"]]')), out) == [("city", "brand")]


def test_none_switches_statistics_off(out):
    assert chosen_pairs(parse(TEXT.format('model = "none"')), out) == []


def test_no_pairs_and_no_crosses_mean_no_statistics(tmp_path):
    assert chosen_pairs(parse(TEXT.format("")), Artifacts(tmp_path)) == []


def test_crosses_without_a_statistics_window_get_none(out):
    TimedWindows(spans={"train": (START, END)}).write(out.windows)
    assert chosen_pairs(parse(TEXT.format("")), out) == []


def test_crosses_of_a_table_without_times_get_none(out):
    assert chosen_pairs(parse(TEXT.format("").replace('event_time = "t"', "")), out) == []
