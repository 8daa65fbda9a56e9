from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import BundleError
from contracts.features.encoding import Encoded
from models.inference.tower_vectors import UserTower
from models.preranking.fscd import Fscd
from models.training import checkpoint
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankQuery, StageStatus
from serving.request.request_features import RequestFeatures, block
from serving.stages.funnel import Funnel
from serving.stages.prerank_scorers import DotProductScorer, FscdScorer, configured_scorer

ASKED = RankQuery(user="u05", limit=5, context={"device": "phone", "hour": 7.0}, rerank=False)
Publish = Callable[..., Path]


@pytest.fixture(scope="module", params=["precomputed", "on_request"])
def bundle(request: Any, publish_bundle: Publish) -> LoadedBundle:
    return LoadedBundle.load(publish_bundle(prerank={"kind": "fscd", "item_side": request.param}))


@pytest.fixture(scope="module")
def network(bundle: LoadedBundle) -> Fscd:
    """The weights of the bundle, as trained and not split."""
    assert bundle.fscd is not None
    whole = Fscd(bundle.spec, bundle.settings.prerank.embedding_dim, bundle.settings.prerank.hidden)
    whole.load_state_dict(bundle_weights(bundle))
    return whole.eval()


def bundle_weights(bundle: LoadedBundle) -> dict[str, torch.Tensor]:
    assert bundle.fscd is not None
    return bundle.fscd.network.state_dict()


@pytest.mark.slow
def test_the_served_scores_are_the_network_s(bundle: LoadedBundle, network: Fscd) -> None:
    features = RequestFeatures(bundle)
    requester = features.requester(ASKED)
    answer = Funnel(bundle).rank(ASKED, Deadline(None))
    rows = bundle.items.rows([item.item for item in answer.items]).astype(np.int64)
    with torch.inference_mode():
        expected = network(block(requester.inputs), block(features.candidate_inputs(rows, requester.inputs.ids)))
    assert [item.stage_scores["prerank"] for item in answer.items] == pytest.approx(expected.tolist(), abs=1e-5)


def test_an_item_that_the_request_describes_scores_as_the_one_it_is(bundle: LoadedBundle, market: Any) -> None:
    row = market.items["item_id"].index("i78")  # too new for the vocabulary of ids
    described = {name: market.items[name][row] for name in ("category", "brand", "price", "item_id")}
    described["tags"] = tuple(market.items["tags"][row])
    asked = replace(ASKED, limit=3, candidates=("i01", "twin", "i78"), features={"twin": described}, bids={"twin": 2.0})
    scores = {item.item: item.stage_scores for item in Funnel(bundle).rank(asked, Deadline(None)).items}
    assert scores["twin"] == pytest.approx(scores["i78"], abs=1e-5)
    alone = Funnel(bundle).rank(replace(ASKED, limit=1, candidates=("i01",)), Deadline(None)).items[0]
    assert scores["i01"] == pytest.approx(alone.stage_scores, abs=1e-5)


def test_dropped_fields_are_not_computed(bundle: LoadedBundle) -> None:
    assert bundle.fscd is not None
    assert bundle.fscd.crosses == ("taste_category",)
    assert not {"visits", "tags", "hour_brand"} & set(bundle.fscd.kept)


def test_the_stage_can_be_cut_between_chunks(bundle: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    from serving.stages import prerank as prerank_stage

    monkeypatch.setattr(prerank_stage, "CHUNK", 6)
    rows = np.arange(len(bundle.items))
    requester = RequestFeatures(bundle).requester(ASKED)
    vector = np.zeros(bundle.settings.train.tower_dim, dtype=np.float32)
    with torch.inference_mode():
        stage = prerank_stage.PrerankStage(bundle).run(
            Candidates(rows, np.zeros(len(rows), dtype=np.int8)), requester, vector, False, 5, Deadline(0.0))
    assert len(stage.candidates) == 6
    assert f"after 6 of {len(rows)}" in stage.cause


def test_the_dot_product_scores_by_what_retrieval_left(bundle: LoadedBundle) -> None:
    answer = Funnel(bundle, DotProductScorer(bundle, bundle.prerank_calibration)).rank(ASKED, Deadline(None))
    for item in answer.items:
        assert item.stage_scores["prerank"] == pytest.approx(
            item.stage_scores["retrieve"] / bundle.settings.train.temperature, rel=1e-5)


def test_the_settings_name_the_scorer(bundle: LoadedBundle, loaded: LoadedBundle) -> None:
    assert isinstance(configured_scorer(bundle), FscdScorer)
    plain = bundle.settings.model_copy(
        update={"prerank": bundle.settings.prerank.model_copy(update={"kind": "dot_product"})})
    assert isinstance(configured_scorer(replace(bundle, settings=plain)), DotProductScorer)
    assert loaded.fscd is None
    assert bundle.pre_ranker is None


def test_without_weights_the_bundle_names_the_step(market: Any, trained: Any, tmp_path: Path) -> None:
    changed = market.config.model_copy(
        update={"prerank": market.config.prerank.model_copy(update={"kind": "fscd"})})
    with pytest.raises(BundleError, match="sluice prerank"):
        assemble(changed, trained, tmp_path / "build")


def test_weights_of_other_settings_are_refused(publish_bundle: Publish, tmp_path: Path, market: Any) -> None:
    path = tmp_path / "weights.safetensors"
    checkpoint.save(Fscd(market.spec, 3, (5,)), path)
    from serving.bundle.networks import load_fscd

    with pytest.raises(BundleError, match="train again"):
        load_fscd(path, market.spec, market.config.prerank)


def test_the_tower_of_one_of_whom_nothing_is_known_is_computed_only_where_it_is_read(
    bundle: LoadedBundle, loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pre-ranker of fields does not read it, that of the towers does; who is known needs it for the search."""
    calls: list[int] = []
    whole = UserTower.__call__

    def counted(tower: UserTower, inputs: Encoded) -> np.ndarray:
        calls.append(1)
        return whole(tower, inputs)

    monkeypatch.setattr(UserTower, "__call__", counted)
    for served, user, wanted in ((bundle, "nobody", 0), (bundle, "u05", 1), (loaded, "nobody", 1)):
        funnel = Funnel(served)
        calls.clear()
        answer = funnel.rank(replace(ASKED, user=user), Deadline(None))
        assert len(calls) == wanted
        assert len(answer.items) == 5
        assert all(stage.status is StageStatus.COMPLETE for stage in answer.stages[:3])
        assert all(("retrieve" in item.stage_scores) is bool(wanted) for item in answer.items)
