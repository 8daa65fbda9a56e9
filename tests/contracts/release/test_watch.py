"""What the watch found is read back as it was; what is infinite is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.days import Watch
from contracts.release.registration import RollbackResult
from contracts.release.watch import WatchFigure, WatchSummary
from contracts.summaries import summary

NO_CLICK = WatchFigure(name="predicted_over_observed", low=30.0, limit=1.25, against=True, sentence="no click came")
QUIET = WatchSummary(
    bundle="shop-2", since="2026-03-01T00:00:00+00:00", until="2026-03-02T00:00:00+00:00", answers=7, figures=(),
    not_judged=("too few answers: 7 of 500",), reasons=(), settings=Watch())
LOUD = QUIET.model_copy(update={
    "previous": "shop-1", "figures": (NO_CLICK,), "reasons": ("no click came",),
    "roll_back": RollbackResult(rolled_back=True, left="shop-2", champion="shop-1", number="1")})


@pytest.mark.parametrize("given", [QUIET, LOUD])
def test_a_summary_is_read_back(tmp_path: Path, given: WatchSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, WatchSummary) == given


def test_an_infinite_end_is_left_out() -> None:
    assert NO_CLICK.plain().keys() == {"name", "low", "limit", "against", "sentence"}
