from __future__ import annotations

import json

import pytest

from contracts.artifacts import Artifacts
from contracts.config import parse
from pipelines.chosen_pairs import chosen_pairs

TEXT = """
name = "t"
[log]
path = "p"
[label]
expression = "y"
[statistics]
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
    found.crosses.parent.mkdir()
    crosses = [["city", "brand", "format"], ["city", "format"], ["city", "format"], ["brand", "format"]]
    found.crosses.write_text(json.dumps({"crosses": [{"name": "x", "parts": parts} for parts in crosses]}))
    return found


def test_crosses_of_order_two_are_taken_each_once(out):
    assert chosen_pairs(parse(TEXT.format("")), out) == [("city", "format"), ("brand", "format")]


def test_configured_pairs_go_before_crosses(out):
    assert chosen_pairs(parse(TEXT.format('pairs = [["city", "brand"]]')), out) == [("city", "brand")]


def test_none_switches_statistics_off(out):
    assert chosen_pairs(parse(TEXT.format('model = "none"')), out) == []


def test_no_pairs_and_no_crosses_mean_no_statistics(tmp_path):
    assert chosen_pairs(parse(TEXT.format("")), Artifacts(tmp_path)) == []
