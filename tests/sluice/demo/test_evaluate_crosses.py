from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from contracts.summaries.demo import CrossEvaluation
from sluice.demo.evaluate_crosses import evaluate_crosses

TRUTH: Any = SimpleNamespace(planted=[("a", "b"), ("a", "c", "d"), ("c", "d")], incidental=[("e", "f")])


def evaluated(*crosses: list[str]) -> CrossEvaluation:
    return evaluate_crosses(crosses, {"none": 0.6, "fives": 0.7, "greedy": 0.9}, TRUTH, 0.75)


def test_only_the_exact_set_of_fields_counts() -> None:
    found = evaluated(["b", "a"], ["a", "c"], ["d#10", "c"], ["e", "f"])
    assert (found.planted, found.found, found.incidental) == (3, 2, 1)
    assert found.precision == pytest.approx(0.5)
    assert found.recall == pytest.approx(2 / 3)


def test_granularities_of_one_cross_count_once() -> None:
    assert evaluated(["a#10", "b"], ["a#50", "b"]).found == 1


def test_shares_of_the_oracle() -> None:
    assert evaluated(["a", "b"]).share_of_oracle == pytest.approx({"without": 0.4, "with": 0.8})
    assert evaluate_crosses([["a", "b"]], {}, TRUTH, 0.75).share_of_oracle == {}


def test_without_crosses_nothing_is_divided_by_nothing() -> None:
    assert evaluated().precision == 0.0
