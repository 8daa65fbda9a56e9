"""A search's summary is read back as it was, with and without the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.features.found_crosses import FoundCross
from contracts.summaries import summary
from contracts.summaries.crosses import (
    CrossComparison,
    CrossesSummary,
    RepresentationFigures,
    SearchEpoch,
    VariantFigures,
)

NONE = VariantFigures(validation_loss=0.3, validation_auc=0.6, auc=0.61, base_ridge=8.0, crosses=0, keys=0)
FIVES = NONE.model_copy(update={"cross_ridge": 10.0, "crosses": 1, "keys": 4, "gain": 0.02, "gain_low": 0.01,
                                "gain_high": 0.03})
COMPARISON = CrossComparison(variants={"none": NONE, "fives": FIVES}, compare_rows=100,
                             representations={"none": RepresentationFigures(auc=0.6, weights=12)})
PLAIN = CrossesSummary(
    crosses=(FoundCross(name="a_x_b", parts=("a", "b"), importance=0.5, gain=12.0, support=4),), columns=("a", "b"),
    allowed_pairs=1, proposed=1, split="time", rows_per_second=1e4, seconds=2.0, phases={"search": 1.0},
    history=(SearchEpoch(epoch=1, fit_loss=0.4, holdout_loss=0.5, seconds=1.0),),
)


@pytest.mark.parametrize("given", [PLAIN, PLAIN.model_copy(update=dict(COMPARISON))])
def test_a_summary_is_read_back(tmp_path: Path, given: CrossesSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, CrossesSummary) == given


def test_what_was_not_compared_is_left_out() -> None:
    assert {"variants", "representations", "lightgbm", "compare_rows"}.isdisjoint(PLAIN.plain())
    assert "gain" not in NONE.plain()


def test_a_summary_of_before_the_words_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / summary.FILE).write_text('{"arms": {}}')
    with pytest.raises(DataError, match="no CrossesSummary"):
        summary.read(tmp_path, CrossesSummary)
