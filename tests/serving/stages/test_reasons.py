from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.encoding import Encoded
from models.networks import registry
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures, block
from serving.stages.rank import RankStage
from serving.stages.reasons import ROUNDING, TOP, Reasons

QUERY = RankQuery("u06", 5, {"device": "phone", "hour": 9.0})
ROWS = np.array([3, 41, 17])


def score(bundle: LoadedBundle, request: dict[str, list], item: dict[str, list]) -> float:
    """Logit of one pair from its raw values alone."""
    encoder, spec = bundle.encoder, bundle.spec
    left, right = encoder.encode(request, "user", "context"), encoder.encode(item, "item")
    ids = {slot.name: left.ids[:, slot.start] for slot in spec.block_ids("request")}
    ids |= {slot.name: right.ids[:, slot.start] for slot in spec.id_slots("item")}
    crosses = encoder.cross_ids({part: ids[part] for part in encoder.part_slots})
    candidate = Encoded(np.concatenate([right.ids, crosses], axis=1), right.dense)
    return float(bundle.ranker(block(left), block(candidate)))


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din"])
def test_changes_against_scoring_raw_values_with_one_left_out(loaded: LoadedBundle, market, name: str) -> None:
    torch.manual_seed(2)
    network: Any = registry.build(name, loaded.spec, loaded.settings.train).eval()
    torch.nn.init.normal_(network.embedding.weight[1:])  # padding is zero
    bundle = replace(loaded, ranker=network)
    features = RequestFeatures(bundle)
    reasons = Reasons(bundle, features)
    user = market.users["_user"].index(QUERY.user)
    request = {f: [market.users[f][user]] for f in ("taste", "visits", "history")}
    request |= {"device": ["phone"], "hour": [9.0]}
    with torch.inference_mode():
        changes = reasons.changes(ROWS, features.requester(QUERY))
        for row, found in zip(ROWS, changes, strict=True):
            at = market.items["_item"].index(bundle.items.key(row))
            item = {f: [market.items[f][at]] for f in reasons.fields if f not in request}
            base = score(bundle, request, item)
            for field, change in zip(reasons.fields, found, strict=True):
                without = score(bundle, {**request, field: [None]} if field in request else request,
                                {**item, field: [None]} if field in item else item)
                assert change == pytest.approx(base - without, abs=1e-4), field


def test_the_largest_changes_come_first(loaded: LoadedBundle) -> None:
    features = RequestFeatures(loaded)
    reasons = Reasons(loaded, features)
    with torch.inference_mode():
        user = features.requester(QUERY)
        changes, top = reasons.changes(ROWS, user), reasons.top(ROWS, user)
    for row, found in zip(changes, top, strict=True):
        largest = sorted(np.abs(row[np.abs(row) > ROUNDING]).tolist(), reverse=True)[:TOP]
        assert [abs(reason.logit_change) for reason in found] == pytest.approx(largest, abs=ROUNDING)
        told = {reason.field: reason.logit_change for reason in found}
        assert told == pytest.approx({name: row[reasons.fields.index(name)] for name in told}, abs=ROUNDING)


def test_every_field_but_the_crosses_is_asked_about(loaded: LoadedBundle) -> None:
    fields = Reasons(loaded, RequestFeatures(loaded)).fields
    assert set(fields) == {field.name for field in loaded.spec.fields if field.kind != "cross"}


def test_what_is_missing_already_is_no_reason(loaded: LoadedBundle) -> None:
    features = RequestFeatures(loaded)
    with torch.inference_mode():
        top = Reasons(loaded, features).top(ROWS, features.requester(RankQuery("nobody", 5)))
    request = {field.name for field in loaded.spec.of_side("user", "context")}
    assert not {reason.field for reasons in top for reason in reasons} & request


def test_no_items(loaded: LoadedBundle) -> None:
    features = RequestFeatures(loaded)
    assert Reasons(loaded, features).top(np.empty(0, dtype=np.int64), features.requester(QUERY)) == []


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "din", "logistic_regression"])
def test_what_the_ranker_has_begun_is_taken_over_and_of_nobody_else(loaded: LoadedBundle, name: str) -> None:
    torch.manual_seed(2)
    bundle = replace(loaded, ranker=registry.build(name, loaded.spec, loaded.settings.train).eval())
    features = RequestFeatures(bundle)
    rank = RankStage(bundle, features)
    shared, own = Reasons(bundle, features, rank), Reasons(bundle, features)
    with torch.inference_mode():
        one, other = features.requester(QUERY), features.requester(RankQuery("u11", 5))
        candidates = Candidates(ROWS, np.zeros(len(ROWS), dtype=np.int8))
        for ranked, explained in ((one, one), (one, other), (other, one)):
            rank.run(candidates, ranked, False, 3, Deadline(None))
            assert shared.top(ROWS, explained) == own.top(ROWS, explained)
            assert rank.begun(explained) is rank.begun(explained)
