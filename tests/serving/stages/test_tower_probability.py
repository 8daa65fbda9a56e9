from __future__ import annotations

import numpy as np
import pytest

from models.evaluation.calibration import Calibration
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.stages.funnel import Funnel
from serving.stages.prerank_scorers import DotProductScorer, configured_scorer
from serving.stages.retrieval import RetrievalStage
from serving.stages.tower_probability import TowerProbability, fitted

NOBODY = np.zeros(3, dtype=np.int8)


def test_the_line_and_the_mean() -> None:
    found = TowerProbability(Calibration(np.array([1.0]), np.array([0.0]), 2.0), 0.3)
    scored = Candidates(np.arange(3), NOBODY, {"retrieve": np.array([0.0, 1.0, 2.0])})
    assert found.of(scored) == pytest.approx(1 / (1 + np.exp([2.0, 0.0, -2.0])))
    assert found.of(Candidates(np.arange(3), NOBODY)).tolist() == [0.3] * 3


def test_a_pre_ranker_that_is_the_inner_product_is_found_exactly(loaded: LoadedBundle) -> None:
    curve = Calibration(np.zeros(1), np.array([-1.5]), 0.8)
    scorer = DotProductScorer(loaded, curve)
    found = fitted(loaded, RequestFeatures(loaded), RetrievalStage(loaded), scorer)
    products = np.linspace(-0.3, 0.3, 3)
    expected = curve.apply(products / loaded.settings.train.temperature)
    assert found.of(Candidates(np.arange(3), NOBODY, {"retrieve": products})) == pytest.approx(expected, rel=1e-4)


def test_on_average_it_says_what_the_pre_ranker_says(loaded: LoadedBundle) -> None:
    found = fitted(loaded, RequestFeatures(loaded), RetrievalStage(loaded), configured_scorer(loaded))
    answer = Funnel(loaded).rank(RankQuery(loaded.users.key(0), 10), Deadline(None))
    towers = np.array([item.stage_scores["retrieve"] for item in answer.items])
    ours = found.of(Candidates(np.arange(len(towers)), np.zeros(len(towers), dtype=np.int8), {"retrieve": towers}))
    theirs = loaded.prerank_calibration.apply(np.array([item.stage_scores["prerank"] for item in answer.items]))
    assert np.abs(ours - theirs).mean() < 0.2
