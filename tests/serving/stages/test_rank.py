from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.features.encoding import Encoded
from models.networks import registry
from serving.bundle.loaded_bundle import LoadedBundle, RankTable
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankQuery, StageStatus
from serving.request.request_features import RequestFeatures, block
from serving.stages import rank as rank_stage
from serving.stages.rank import RankStage
from serving.stages.scoring_stage import Stage

QUERY = RankQuery("u06", 5, {"device": "phone", "hour": 9.0})
ROWS = np.arange(20)[::-1].copy()


def rank(bundle: LoadedBundle, deadline: Deadline, by_value: bool = False, limit: int = 5) -> Stage:
    features = RequestFeatures(bundle)
    candidates = Candidates(ROWS, np.zeros(len(ROWS), dtype=np.int8))
    with torch.inference_mode():
        return RankStage(bundle, features).run(candidates, features.requester(QUERY), by_value, limit, deadline)


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din", "din_sequence", "logistic_regression", "popularity"])
def test_broadcasting_equals_one_candidate_at_a_time(loaded: LoadedBundle, name: str) -> None:
    torch.manual_seed(3)
    bundle = replace(loaded, ranker=registry.build(name, loaded.spec, loaded.settings.train).eval())
    stage = rank(bundle, Deadline(None))
    features = RequestFeatures(bundle)
    user = features.requester(QUERY)
    for row, probability in zip(stage.candidates.rows, stage.candidates.scores["rank"], strict=True):
        candidate = features.candidate_inputs(np.array([row]), user.inputs.ids)
        with torch.inference_mode():
            logit = bundle.ranker(block(user.inputs), block(Encoded(candidate.ids, candidate.dense))).numpy()
        assert probability == pytest.approx(bundle.calibration.apply(logit)[0], abs=1e-5)


@pytest.mark.parametrize("by_value", [True, False])
def test_best_first(loaded: LoadedBundle, by_value: bool) -> None:
    candidates = rank(loaded, Deadline(None), by_value).candidates
    assert loaded.bids is not None
    worth = candidates.scores["rank"] * (loaded.bids[candidates.rows] if by_value else 1.0)
    assert (np.diff(worth) <= 0).all()
    assert sorted(candidates.rows.tolist()) == sorted(ROWS.tolist())


class Countdown(Deadline):
    """Expires after being asked a number of times: the chunk at which a stage stops is then known."""

    def __init__(self, questions: int) -> None:
        super().__init__(0.0)
        self.left = questions

    def remaining(self) -> float:
        self.left -= 1
        return -1.0 if self.left < 0 else 1000.0


def test_a_cut_keeps_what_is_scored(loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_stage, "CHUNK", 6)
    stage = rank(loaded, Countdown(1))
    assert stage.status is StageStatus.DEGRADED
    assert stage.cause == "the deadline passed after 12 of 20 candidates"
    assert set(stage.candidates.rows.tolist()) == set(ROWS[:12].tolist())


def test_items_parts_from_the_table_give_the_same(loaded: LoadedBundle) -> None:
    assert loaded.rank_table is not None
    read, computed = rank(loaded, Deadline(None)), rank(replace(loaded, rank_table=None), Deadline(None))
    assert read.candidates.rows.tolist() == computed.candidates.rows.tolist()
    np.testing.assert_allclose(read.candidates.scores["rank"], computed.candidates.scores["rank"], atol=1e-5)


def test_another_rankers_table_is_not_read(loaded: LoadedBundle) -> None:
    assert loaded.rank_table is not None
    wrong = RankTable(registry.build("dnn", loaded.spec, loaded.settings.train), loaded.rank_table.rows + 1.0)
    expected = rank(loaded, Deadline(None)).candidates.scores["rank"]
    found = rank(replace(loaded, rank_table=wrong), Deadline(None)).candidates.scores["rank"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
