from __future__ import annotations

import numpy as np
import pytest
import torch

from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankQuery, StageStatus
from serving.request.request_features import Requester, RequestFeatures
from serving.stages import prerank as prerank_stage
from serving.stages.prerank import PrerankStage
from serving.stages.scoring_stage import Stage


def somebody(bundle: LoadedBundle) -> Requester:
    return RequestFeatures(bundle).requester(RankQuery(user="u01", limit=5))


def prerank(
    bundle: LoadedBundle, deadline: Deadline, by_value: bool = True, limit: int = 5
) -> tuple[torch.Tensor, Stage]:
    user = torch.nn.functional.normalize(torch.ones(1, bundle.settings.train.tower_dim), dim=1)
    rows = np.arange(len(bundle.items))[::-1].copy()
    with torch.inference_mode():
        stage = PrerankStage(bundle).run(
            Candidates(rows, np.zeros(len(rows), dtype=np.int8)), somebody(bundle), user[0].numpy(), by_value, limit,
            deadline)
    return user, stage


@pytest.mark.parametrize("by_value", [True, False])
def test_keeps_the_best_by_the_objective(loaded: LoadedBundle, by_value: bool) -> None:
    user, stage = prerank(loaded, Deadline(None), by_value)
    worth = []
    assert loaded.pre_ranker is not None
    assert loaded.bids is not None
    for row in range(len(loaded.items)):
        with torch.inference_mode():
            logit = float(loaded.pre_ranker(user, torch.from_numpy(loaded.item_vectors[row : row + 1].copy())))
        probability = float(loaded.prerank_calibration.apply(np.array(logit)))
        worth.append(float(loaded.bids[row]) * probability if by_value else logit)
    expected = np.array(worth)[stage.candidates.rows]
    assert len(expected) == loaded.settings.prerank.keep
    assert expected == pytest.approx(sorted(worth, reverse=True)[: len(expected)], rel=1e-5)
    assert stage.status is StageStatus.COMPLETE


def test_without_time_one_chunk_is_scored(loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerank_stage, "CHUNK", 8)
    _, stage = prerank(loaded, Deadline(0.0))
    assert stage.status is StageStatus.DEGRADED
    assert f"after 8 of {len(loaded.items)}" in stage.cause
    assert set(stage.candidates.rows.tolist()) == set(range(len(loaded.items) - 8, len(loaded.items)))


def test_a_chunk_holds_the_slate(loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerank_stage, "CHUNK", 2)
    assert len(prerank(loaded, Deadline(0.0), limit=10)[1].candidates) == 10
