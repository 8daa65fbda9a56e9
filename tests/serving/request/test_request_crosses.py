from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import PairModel
from models.pair_rates.weights import with_pair_rates
from models.preranking.fscd import Fscd
from models.preranking.fscd_scorer import FscdSplit
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request import request_crosses
from serving.request.query import RankQuery
from serving.request.request_crosses import RequestCrosses
from serving.request.request_features import RequestFeatures, block

ROWS = np.array([3, 0, 3, 7, -1, 11])


@pytest.fixture(scope="module")
def bundle(publish_bundle: Callable[..., Path]) -> LoadedBundle:
    return LoadedBundle.load(publish_bundle(prerank={"kind": "fscd"}))


@pytest.mark.parametrize("few", [0, 1, 3, 1000])
def test_once_per_combination_is_once_per_candidate(
    bundle: LoadedBundle, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_crosses, "FEW", few)
    torch.manual_seed(0)
    pairs = [("taste", "category"), ("history", "tags")]
    network = Fscd(with_pair_rates(bundle.spec, pairs, PairModel(head="dot", dim=3)), 4, (8,)).eval()
    statistics = network.requires_grad_(False).embedding.pair_rates
    assert statistics is not None
    for values in statistics.parameters():
        torch.nn.init.normal_(values)
    split = FscdSplit(network, network.fields)
    assert len(split.crosses) == 4
    asked = RankQuery(user="u05", limit=1, context={"device": "phone", "hour": 7.0})
    request = RequestFeatures(bundle).requester(asked).inputs
    with torch.inference_mode():
        user = split.user_part(block(request))
        found = RequestCrosses(bundle, split).of(request, user)(ROWS)
        expected = RequestCrosses(bundle, split, grouped=False).of(request, user)(ROWS)
    assert torch.allclose(found, expected.expand_as(found), atol=1e-5)
    assert not torch.allclose(found, user.expand_as(found), atol=1e-3)


def test_without_crosses_only_the_user_s_part_is_left(bundle: LoadedBundle) -> None:
    network = Fscd(bundle.spec, 4, (8,)).eval().requires_grad_(False)
    split = FscdSplit(network, ["category"])
    request = RequestFeatures(bundle).requester(RankQuery(user="u05", limit=1)).inputs
    user = torch.ones(1, 8)
    assert torch.equal(RequestCrosses(bundle, split).of(request, user)(ROWS), user)


def test_what_an_item_changes_to_is_not_what_others_of_its_group_have(bundle: LoadedBundle) -> None:
    """Ids and numbers of items are written in place, behind the bundle's rows too."""
    assert bundle.fscd is not None
    count, room = len(bundle.items), 4
    ids, dense = (np.concatenate([table[:-1], np.repeat(table[-1:], room, axis=0)])
                  for table in (bundle.items.ids, bundle.items.dense))
    growing = replace(bundle, items=FeatureStore(bundle.items.keys, ids, dense))
    request = RequestFeatures(bundle).requester(RankQuery(user="u05", limit=1)).inputs
    unchanged, changed = np.array([count // 2, count - 1, -1]), np.r_[: count // 2, count : count + room - 1]
    with torch.inference_mode():
        user = bundle.fscd.user_part(block(request))
        crosses = RequestCrosses(growing, bundle.fscd)
        before = crosses.of(request, user)(unchanged)
        ids[changed] = np.roll(ids[changed], 1, axis=0)
        assert torch.equal(crosses.of(request, user)(unchanged), before)
