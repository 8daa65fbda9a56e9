"""The gate's verdict is read back as it was, whole or of a version that was refused unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.days import Gate
from contracts.release.gate import Estimate, GateSummary, MedianMilliseconds, Promotion, RankingGain
from contracts.summaries import summary

UNSEEN = GateSummary(challenger="shop-2", reasons=("it was rolled back",))
WHOLE = GateSummary(
    challenger="shop-2", champion="shop-1", rows=900, settings=Gate(margin=0.01), forced=True,
    calibration=Estimate(value=1.1, standard_error=0.1, low=0.9, high=1.3),
    difference=RankingGain(figure="GAUC", value=-0.1, standard_error=0.01, low=-0.12, high=-0.08),
    milliseconds=MedianMilliseconds(challenger=2.0, champion=1.9), reasons=("GAUC: worse",))


@pytest.mark.parametrize("given", [UNSEEN, WHOLE])
def test_a_verdict_is_read_back(tmp_path: Path, given: GateSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, GateSummary) == given


def test_a_promotion_says_all_that_the_verdict_says() -> None:
    said = Promotion(**dict(WHOLE), promoted=True, number="2").plain()
    assert said == WHOLE.plain() | {"promoted": True, "number": "2"}
