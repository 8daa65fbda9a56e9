from __future__ import annotations

from contracts.summaries.features import DrawnRows
from sluice.report.positives_alone import meaning

DRAWN = DrawnRows(positives=9000, negatives=36_000, newcomers=60, repeats=0, exhausted=2, items=60, per_positive=4,
                  popularity=0.0, written=())


def test_it_says_what_was_drawn_and_what_figures_and_probabilities_mean() -> None:
    text = meaning(DRAWN)
    for part in ("4 rows were drawn for each of 9,000 takes, every item alike, of 60 items",
                 "60 that were the first of their item, 2 of users who had taken all there was",
                 "against those drawn rows", "this item being the one taken when the user takes something"):
        assert part in text
    assert "repeated" not in text


def test_it_names_the_power_and_no_reason_that_left_nothing_out() -> None:
    text = meaning(DRAWN.model_copy(update={"popularity": 0.75, "newcomers": 0, "exhausted": 0}))
    assert "an item by its takes so far to the power 0.75" in text
    assert "without drawn rows" not in text


def test_it_tells_how_many_rows_a_retrieval_gave() -> None:
    text = meaning(DRAWN.model_copy(update={"candidates": 0.5, "retrieved": 9000}))
    assert "25% of them evenly from what an item-to-item retrieval" in text
    assert "(50% where it had anything)" in text
    assert "retrieval" not in meaning(DRAWN)
