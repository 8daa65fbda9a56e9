from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.features.encoding import Encoded
from models.inference import item_part
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


class Moved:
    """A live number of every other item, with the id of its bin."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self.ids = np.array([slot.start for slot in bundle.spec.id_slots("item") if slot.field == "price"])
        self.dense = np.array([slot.start for slot in bundle.spec.dense_slots("item") if slot.field == "price"])

    def write(self, rows: np.ndarray, ids: np.ndarray, dense: np.ndarray) -> None:
        moved = np.flatnonzero(rows % 2)
        ids[moved[:, None], self.ids] = 2 + rows[moved, None] % 3
        dense[moved[:, None], self.dense] = rows[moved, None] / 10


@pytest.mark.parametrize("by_table", [True, False])
@pytest.mark.parametrize("name", registry.names())
def test_live_inputs_are_ranked_by(loaded: LoadedBundle, name: str, by_table: bool) -> None:
    """By every network, whether or not a table holds its items' part: as it was trained to read such inputs."""
    torch.manual_seed(3)
    network = registry.build(name, loaded.spec, loaded.settings.train).eval()
    table = item_part.table(network, Encoded(np.asarray(loaded.items.ids), np.asarray(loaded.items.dense)))
    known = RankTable(network, table) if by_table and table is not None else None
    still = replace(loaded, ranker=network, rank_table=known)
    moved = replace(still, live=(Moved(loaded),))
    features = RequestFeatures(moved)
    user = features.requester(QUERY)
    candidate = features.candidate_inputs(ROWS, user.inputs.ids)
    assert (candidate.dense != RequestFeatures(still).candidate_inputs(ROWS, user.inputs.ids).dense).any()
    with torch.inference_mode():
        logits = network(block(user.inputs), block(candidate)).float().numpy()
    found = rank(moved, Deadline(None)).candidates
    by_row = dict(zip(found.rows.tolist(), found.scores["rank"].tolist(), strict=True))
    np.testing.assert_allclose([by_row[row] for row in ROWS.tolist()], loaded.calibration.apply(logits), atol=1e-5)


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
