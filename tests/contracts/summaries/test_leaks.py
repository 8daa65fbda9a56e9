"""The summary of the leak check is read back as it was, judged or skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.summaries import summary
from contracts.summaries.leaks import FieldFigures, LeaksSummary, SuspectedField, ValueGroup

DURATION = FieldFigures(auc=0.9, standard_error=0.01, present_positive=1.0, present_negative=0.9)
FOUND = LeaksSummary(
    rows=600, fields={"duration": DURATION}, planted_found=True, seconds=0.5,
    suspected={"duration": SuspectedField(reasons=("it says too much",), kinds=("irreplaceable",),
                                          profile=(ValueGroup(value="0 to 9", share=0.5, rate=0.1),))},
)
SKIPPED = LeaksSummary(fields={}, suspected={}, skipped="too few rows")


@pytest.mark.parametrize("given", [FOUND, SKIPPED])
def test_a_summary_is_read_back(tmp_path: Path, given: LeaksSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, LeaksSummary) == given


def test_what_cannot_be_known_is_left_out() -> None:
    assert {"later_auc", "day_correlation", "irreplaceable"}.isdisjoint(DURATION.plain())
    assert SKIPPED.plain() == {"fields": {}, "suspected": {}, "skipped": "too few rows"}
