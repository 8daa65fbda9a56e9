"""The estimate against the exact change: equal where the network is linear, of the same fields where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.encoding import Encoded
from models.inference import split_ranker
from models.networks import registry
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.stages import reasons as reasons_module
from serving.stages.reasons import ROUNDING, Reasons
from serving.stages.sensitivity import Sensitivity

QUERY = RankQuery("u06", 5, {"device": "phone", "hour": 9.0})
ROWS = np.array([3, 41, 17, 20])


def with_ranker(loaded: LoadedBundle, name: str) -> LoadedBundle:
    torch.manual_seed(2)
    network: Any = registry.build(name, loaded.spec, loaded.settings.train).eval().requires_grad_(False)
    torch.nn.init.normal_(network.embedding.weight[1:], std=0.3)  # padding is zero
    return replace(loaded, ranker=network)


def exact_and_told(bundle: LoadedBundle) -> tuple[np.ndarray, list[list[tuple[int, float]]]]:
    features = RequestFeatures(bundle)
    reasons = Reasons(bundle, features)
    with torch.inference_mode():
        user = features.requester(QUERY)
        changes = reasons.changes(ROWS, user)
        told = [[(reasons.fields.index(one.field), one.logit_change) for one in item]
                for item in reasons.top(ROWS, user)]
    return changes, told


@pytest.mark.parametrize(
    "name", ["dnn", "dcn_v2", "gdcn", "deep_fm", "final_mlp", "final_net", "fives", "din"])
def test_what_is_told_is_exact_and_about_the_fields_that_count(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(reasons_module, "LOOKED_AT", 4)
    changes, told = exact_and_told(with_ranker(loaded, name))
    shares = []
    for exact, found in zip(changes, told, strict=True):
        assert all(change == pytest.approx(exact[field], abs=ROUNDING) for field, change in found)
        best = np.sort(np.abs(exact))[::-1][: len(found)].sum()
        shares.append(sum(abs(change) for _, change in found) / best)
    assert np.mean(shares) > 0.85


def test_of_a_linear_network_the_estimate_is_the_change(loaded: LoadedBundle) -> None:
    """But for parts of a cross: a cross with one missing part is not what it is with all of them missing."""
    bundle = with_ranker(loaded, "logistic_regression")
    features = RequestFeatures(bundle)
    fields = Reasons(bundle, features).fields
    exact, _ = exact_and_told(bundle)
    user = features.requester(QUERY)
    missing = features.missing_request, features.candidate_inputs(np.array([-1]), features.missing_request.ids)
    found = Sensitivity(bundle.ranker, bundle.spec, fields).changes(
        user.inputs, features.candidate_inputs(ROWS, user.inputs.ids), missing)
    assert found is not None
    parts = [part for field in bundle.spec.fields for part in field.parts or ()]
    crossed = {part if part in fields else bundle.spec.slot(part).field for part in parts}
    alone = [place for place, name in enumerate(fields) if name not in crossed]
    assert 0 < len(alone) < len(fields)
    assert found[:, alone] == pytest.approx(exact[:, alone], abs=ROUNDING)


def test_a_network_without_an_embedding_cannot_be_asked(loaded: LoadedBundle) -> None:
    block = Encoded(np.zeros((1, 2), dtype=np.int32), np.zeros((1, 2), dtype=np.float32))
    assert Sensitivity(torch.nn.Linear(2, 1), loaded.spec, ["taste"]).changes(block, block, (block, block)) is None


@pytest.mark.parametrize("name", ["dnn", "dcn_v2"])
def test_slopes_of_what_serves_are_those_of_the_network(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    bundle = with_ranker(loaded, name)
    features = RequestFeatures(bundle)
    fields = Reasons(bundle, features).fields
    user = features.requester(QUERY)
    candidate = features.candidate_inputs(ROWS, user.inputs.ids)
    missing = features.missing_request, features.candidate_inputs(np.array([-1]), features.missing_request.ids)
    found = Sensitivity(bundle.ranker, bundle.spec, fields).changes(user.inputs, candidate, missing)
    monkeypatch.setattr(split_ranker, "of", split_ranker.PlainRanker)
    expected = Sensitivity(bundle.ranker, bundle.spec, fields).changes(user.inputs, candidate, missing)
    assert found is not None
    assert expected is not None
    assert found == pytest.approx(expected, abs=1e-5)
