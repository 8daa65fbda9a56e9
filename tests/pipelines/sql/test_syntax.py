"""Answers to these cases are compared in test_functions.py."""

from __future__ import annotations

import pytest

from pipelines.sql.calls import calls
from pipelines.sql.syntax import SYNTAX


@pytest.mark.parametrize("name", ["cast", "try_cast", "if"])
def test_each_cast_and_branch_is_in_each_of_its_cases(name: str) -> None:
    assert SYNTAX[name]
    assert all(name in {call.name for call in calls(text)} for text in SYNTAX[name])


def test_an_operators_case_is_more_than_a_call() -> None:
    whole = [text for text in SYNTAX["operators"] for call in calls(text) if (call.start, call.end) == (0, len(text))]
    assert whole == []


def test_no_case_stands_twice() -> None:
    written = [text for texts in SYNTAX.values() for text in texts]
    assert len(written) == len(set(written))
