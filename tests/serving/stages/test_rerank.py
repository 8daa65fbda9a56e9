from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contracts.config.stages import Rerank
from models.evaluation.calibration import Calibration
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import CHANNELS, Candidates
from serving.request.deadline import Deadline
from serving.request.query import Fallback, Reason, Sold, StageStatus
from serving.stages.auction import second_price
from serving.stages.diversity import mmr
from serving.stages.rerank import RerankStage, Sale, Slate, slate_items
from serving.stages.tower_probability import TowerProbability

ROWS = np.arange(12)
PROBABILITIES = np.random.default_rng(4).uniform(0.01, 0.3, len(ROWS))
RANKED = Candidates(ROWS, np.zeros(len(ROWS), dtype=np.int8), {"prerank": np.zeros(len(ROWS)), "rank": PROBABILITIES})

SLATE_ROWS = np.array([5, 2, 7])
ON_SLATE = Candidates(SLATE_ROWS, np.array([0, 1, 0], dtype=np.int8),
                        {"prerank": np.array([3.0, 2.0, 1.0]), "rank": np.array([0.3, 0.2, 0.1])})
SLATE = Slate(ON_SLATE, np.array([0.3, 0.2, 0.1]), np.array([30.0, 20.0, 10.0]))
REASONS = [[Reason("brand", 0.5)], [], []]
TOWERS = TowerProbability(Calibration(np.zeros(1), np.array([-2.0]), 3.0), 0.05)


def rerank(
    bundle: LoadedBundle, candidates: Candidates = RANKED, wanted: bool = True, seconds: float | None = None,
    **settings: Any,
) -> Slate:
    changed = replace(bundle, settings=bundle.settings.model_copy(update={"rerank": Rerank(**settings)}))
    return RerankStage(changed, TOWERS).run(candidates, 5, wanted, Deadline(seconds))


def test_auction_where_there_are_bids(loaded: LoadedBundle) -> None:
    assert loaded.bids is not None
    expected = second_price(loaded.bids[ROWS], PROBABILITIES, ROWS, 5, 20.0)
    slate = rerank(loaded, reserve_price=20.0)
    assert slate.candidates.rows.tolist() == ROWS[expected.order].tolist()
    assert slate.sale is not None
    assert slate.sale.price.tolist() == expected.price.tolist()
    assert slate.score.tolist() == expected.score.tolist()
    assert slate.probability.tolist() == PROBABILITIES[expected.order].tolist()


def test_an_item_without_a_bid_is_not_sold_whatever_its_probability_and_moves_no_price(loaded: LoadedBundle) -> None:
    assert loaded.bids is not None
    likeliest = int(PROBABILITIES[:5].argmax())  # of five, for which there are as many places
    bids = np.where(np.arange(len(loaded.bids)) == likeliest, 0, loaded.bids)
    slate = rerank(replace(loaded, bids=bids), RANKED.take(ROWS[:5]))
    others = rerank(loaded, RANKED.take(np.delete(ROWS[:5], likeliest)))
    assert slate.candidates.rows.tolist() == others.candidates.rows.tolist()
    assert slate.sale is not None
    assert others.sale is not None
    assert slate.sale.price.tolist() == others.sale.price.tolist()
    assert "1 of 5 candidates have no bid and are not sold" in slate.cause
    assert others.cause == ""


def test_where_nothing_has_a_bid_nothing_is_sold(loaded: LoadedBundle) -> None:
    slate = rerank(replace(loaded, bids=np.zeros(len(loaded.items), dtype=np.float32)))
    assert len(slate.candidates) == 0
    assert "12 of 12 candidates have no bid" in slate.cause


def test_diversity_where_there_are_none(loaded: LoadedBundle) -> None:
    slate = rerank(replace(loaded, bids=None), diversity=0.4)
    expected = mmr(PROBABILITIES / PROBABILITIES.max(), loaded.item_vectors[ROWS], ROWS, 5, 0.4)
    assert slate.candidates.rows.tolist() == ROWS[expected.order].tolist()
    assert slate.score.tolist() == expected.score.tolist()  # no probability: the likeliest has 1 - diversity
    assert slate.score[0] == pytest.approx(1 - 0.4)
    assert slate.probability[0] == PROBABILITIES.max()
    assert slate.sale is None


@pytest.mark.parametrize(("wanted", "kind", "cause"), [(False, "auto", "the request"), (True, "none", "settings")])
def test_without_reranking_by_probability(loaded: LoadedBundle, wanted: bool, kind: str, cause: str) -> None:
    slate = rerank(loaded, wanted=wanted, kind=kind)
    assert slate.candidates.rows.tolist() == np.argsort(-PROBABILITIES)[:5].tolist()
    assert slate.score.tolist() == slate.probability.tolist()
    assert slate.sale is None
    assert slate.status is StageStatus.SKIPPED
    assert cause in slate.cause


def test_without_time_no_diversity(loaded: LoadedBundle) -> None:
    slate = rerank(loaded, seconds=0.0, kind="mmr", diversity=1.0)
    assert slate.candidates.rows.tolist() == np.argsort(-PROBABILITIES)[:5].tolist()
    assert (slate.status, slate.fallback) == (StageStatus.DEGRADED, Fallback.ORGANIC_ORDER)


def test_without_any_scorer_probabilities_are_the_towers(loaded: LoadedBundle) -> None:
    products = np.linspace(-0.5, 0.5, len(ROWS))
    found = Candidates(ROWS, np.zeros(len(ROWS), dtype=np.int8), {"retrieve": products})
    slate = rerank(loaded, found, wanted=False)
    assert slate.candidates.rows.tolist() == ROWS[::-1][:5].tolist()
    assert slate.probability == pytest.approx(1 / (1 + np.exp(2.0 - 3.0 * products[::-1][:5])))


def test_candidates_of_which_nothing_is_known_stay_in_their_order(loaded: LoadedBundle) -> None:
    popular = Candidates(ROWS[::-1].copy(), np.zeros(len(ROWS), dtype=np.int8))
    slate = rerank(replace(loaded, bids=None), popular, kind="none")
    assert slate.candidates.rows.tolist() == ROWS[::-1][:5].tolist()
    assert set(slate.probability) == {0.05}


def test_without_time_the_auction_still_sets_prices(loaded: LoadedBundle) -> None:
    slate = rerank(loaded, seconds=0.0)
    assert slate.status is StageStatus.COMPLETE
    assert slate.sale is not None


def test_without_the_ranker_prices_rest_on_the_pre_rankers_calibrated_probabilities(loaded: LoadedBundle) -> None:
    """A pre-ranker that is too sure of itself by far: what it says is not what its calibration makes of it."""
    logits = np.random.default_rng(5).normal(-4, 3, len(ROWS))
    unranked = Candidates(ROWS, np.zeros(len(ROWS), dtype=np.int8), {"prerank": logits})
    bundle = replace(loaded, prerank_calibration=Calibration(np.zeros(1), np.array([-1.0]), 0.25))
    honest = 1 / (1 + np.exp(1.0 - 0.25 * logits))
    assert loaded.bids is not None
    expected = second_price(loaded.bids[ROWS], honest, ROWS, 5, 20.0)
    naive = second_price(loaded.bids[ROWS], 1 / (1 + np.exp(-logits)), ROWS, 5, 20.0)
    slate = rerank(bundle, unranked, seconds=0.0, reserve_price=20.0)
    assert slate.candidates.rows.tolist() == ROWS[expected.order].tolist() != ROWS[naive.order].tolist()
    assert slate.probability == pytest.approx(honest[expected.order])
    assert slate.sale is not None
    assert slate.sale.price == pytest.approx(expected.price)


@pytest.mark.parametrize("kind", ["auction", "mmr", "none"])
def test_no_candidates(loaded: LoadedBundle, kind: str) -> None:
    assert len(rerank(loaded, RANKED.take(slice(0, 0)), kind=kind).candidates) == 0


def test_every_item_has_its_own_row_of_each_column(loaded: LoadedBundle) -> None:
    items = slate_items(SLATE, REASONS, loaded.items)
    assert [one.item for one in items] == [loaded.items.key(row) for row in SLATE_ROWS]
    assert [(one.probability, one.score) for one in items] == [(0.3, 30.0), (0.2, 20.0), (0.1, 10.0)]
    assert [one.channel for one in items] == [CHANNELS[0], CHANNELS[1], CHANNELS[0]]
    assert [one.stage_scores for one in items] == [
        {"prerank": 3.0, "rank": 0.3}, {"prerank": 2.0, "rank": 0.2}, {"prerank": 1.0, "rank": 0.1}]
    assert [one.reasons for one in items] == REASONS
    assert [one.sold for one in items] == [None] * 3


@pytest.mark.parametrize(("behind", "last"), [([9], 9), ([], None)])
def test_an_item_is_sold_against_the_one_behind_it(loaded: LoadedBundle, behind: list[int], last: int | None) -> None:
    """The last against the one that had no slot, or the reserve."""
    left = Candidates(np.array(behind, dtype=int), np.zeros(len(behind), dtype=np.int8))
    sale = Sale(np.array([4.0, 3.0, 2.0]), np.array([3.5, 2.5, 1.5]), np.array([20.0, 10.0, 5.0]), left)
    items = slate_items(Slate(ON_SLATE, SLATE.probability, SLATE.score, sale), [[], [], []], loaded.items)
    first, second, third = (one.sold for one in items)
    assert first == Sold(4.0, 3.5, loaded.items.key(2), 20.0)
    assert second == Sold(3.0, 2.5, loaded.items.key(7), 10.0)
    assert third == Sold(2.0, 1.5, "" if last is None else loaded.items.key(last), 5.0)


def test_rules_name_the_runners_up_themselves(loaded: LoadedBundle) -> None:
    left = Candidates(np.array([], dtype=int), np.array([], dtype=np.int8))
    sale = Sale(np.ones(3), np.ones(3), np.ones(3), left, ["a", "", "b"])
    items = slate_items(Slate(ON_SLATE, SLATE.probability, SLATE.score, sale), [[], [], []], loaded.items)
    assert [one.sold.runner_up for one in items if one.sold] == ["a", "", "b"]
