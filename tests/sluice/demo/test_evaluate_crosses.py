from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sluice.demo.evaluate_crosses import verdict

TRUTH: Any = SimpleNamespace(planted=[("a", "b"), ("a", "c", "d"), ("c", "d")], incidental=[("e", "f")])


def figures(*crosses: list[str]) -> dict[str, Any]:
    return {"crosses": [{"parts": parts} for parts in crosses], "arms": {"none": {"auc": 0.6}, "fives": {"auc": 0.7}}}


def test_only_the_exact_set_of_fields_counts() -> None:
    found = verdict(figures(["b", "a"], ["a", "c"], ["d#10", "c"], ["e", "f"]), TRUTH, 0.75)
    assert (found["planted"], found["found"], found["incidental"]) == (3, 2, 1)
    assert found["precision"] == pytest.approx(0.5)
    assert found["recall"] == pytest.approx(2 / 3)


def test_granularities_of_one_cross_count_once() -> None:
    assert verdict(figures(["a#10", "b"], ["a#50", "b"]), TRUTH, 0.75)["found"] == 1


def test_shares_of_the_oracle() -> None:
    shares = verdict(figures(["a", "b"]), TRUTH, 0.75)["share_of_oracle"]
    assert shares == pytest.approx({"without": 0.4, "with": 0.8})


def test_without_crosses_nothing_is_divided_by_nothing() -> None:
    assert verdict(figures(), TRUTH, 0.75)["precision"] == 0.0
