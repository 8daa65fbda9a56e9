"""Pre-rankers against a truth that is known."""

from __future__ import annotations

import pytest

from contracts.artifacts import Artifacts
from sluice.demo.evaluate_prerank import DECOYS, KINDS, decoys_kept, evaluate_prerank, slates_behind
from sluice.demo.evaluate_slates import ServedVisits
from tests.heard_progress import heard, names
from tests.sluice.demo.conftest import LIMIT


def test_decoys_are_counted_among_the_chosen_fields() -> None:
    assert decoys_kept(["city", "price"]) == 0
    assert decoys_kept(["city", *DECOYS]) == len(DECOYS)


def test_the_loss_is_what_the_served_pre_ranker_takes_from_the_ranker_on_everything(
    run: Artifacts, visits: ServedVisits
) -> None:
    with heard() as said:
        slates = {kind: slates_behind(kind, visits.visits, LIMIT, run) for kind in KINDS}
    found = evaluate_prerank(slates, visits.markets)
    assert names(said) == ["slates of fscd", "slates of dot_product", "slates of full_ranker"]
    for share in (found.fscd, found.dot_product, found.full_ranker):
        assert 0 < share <= 1
    assert found.lost == pytest.approx(1 - found.fscd / found.full_ranker)
