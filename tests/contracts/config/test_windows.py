from __future__ import annotations

import pytest
from pydantic import ValidationError

from contracts.config.windows import Features, Windows

DATES = {"statistics": ["2026-01-05", "2026-01-06"], "train": ["2026-01-06", "2026-01-08"],
         "validation": ["2026-01-08", "2026-01-09"], "test": ["2026-01-10", "2026-01-11"]}


def test_windows_are_named_in_the_order_of_time() -> None:
    assert list(Windows().named()) == ["statistics", "train", "validation", "test"]
    assert sum(Windows().named().values()) == pytest.approx(1.0)  # type: ignore[arg-type]


def test_dates_may_leave_gaps_and_may_not_overlap() -> None:
    assert Windows.model_validate(DATES).test_where is None
    with pytest.raises(ValidationError, match="windows overlap: 'train' ends 2026-01-09 00:00, after 'validation'"):
        Windows.model_validate(DATES | {"train": ["2026-01-06", "2026-01-09"]})


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"test": 0.2}, "add up to 1.1"), ({"validation": 0.0, "test": 0.2}, "'validation' has share 0"),
    ({"test": ["2026-01-10", "2026-01-11"]}, "all dates or all shares"),
])
def test_shares_split_all_rows(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Windows.model_validate(changes)


def test_marked_test_rows_leave_the_others_their_shares() -> None:
    assert Windows(test_where="x", statistics=0.0, train=0.8, validation=0.2, test=0.0).named()["train"] == 0.8


@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_some_negatives_are_kept(rate: float) -> None:
    with pytest.raises(ValidationError, match="negative_rate"):
        Features(negative_rate=rate)
