from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.preranking.candidate_batches import REQUESTS_AT_ONCE, batch, drawn, score
from models.preranking.fscd import Fscd
from tests.models.prerank_market import task


def test_a_candidate_block_is_the_item_s_inputs_then_the_pair_s() -> None:
    job = task()
    lists, items = job.sources.lists, job.sources.items
    requests, places = np.array([5, 2]), np.array([[0, 3, 1], [7, 7, 2]])
    found = batch(items, lists, requests, places)
    assert found.candidate.ids.shape == (6, items.ids.shape[1] + lists.pair_ids.shape[2])
    for number, (request, place) in enumerate(zip(requests.repeat(3), places.ravel(), strict=True)):
        row = lists.rows[request, place]
        expected = [*items.ids[row], *lists.pair_ids[request, place]]
        assert found.candidate.ids[number].tolist() == expected
        assert found.teacher.ravel()[number] == lists.teacher[request, place]
    assert torch.equal(found.request.ids, torch.from_numpy(lists.request_ids[requests]))


def test_draws_do_not_repeat_and_padding_comes_last() -> None:
    lists = task().sources.lists
    rows = lists.rows.copy()
    rows[:, -50:] = -1
    padded = replace(lists, rows=rows)
    places = drawn(padded, np.arange(9), 14, np.random.default_rng(0))
    real = rows.shape[1] - 50
    for request, found in enumerate(places):
        assert len(set(found.tolist())) == 14
        assert (rows[request, found] >= 0).sum() == min(real, 14)


@pytest.mark.parametrize("dropped", [0, 1])
def test_scores_are_the_network_s_however_many_are_scored_at_once(dropped: int) -> None:
    """With every field, and without every other one."""
    job = task()
    network = Fscd(job.spec, 4, (8,))
    if dropped:
        network.keep(network.fields[::2])
    whole = score(network, job.sources.items, job.evaluated)
    assert len(job.evaluated) > 2 * REQUESTS_AT_ONCE
    assert job.spec.of_side("cross")
    part = batch(job.sources.items, job.evaluated, np.array([20]))
    with torch.inference_mode():
        alone = network.eval()(part.request, part.candidate).numpy()
    np.testing.assert_allclose(whole[20], alone, atol=1e-6)


def test_scores_of_padded_lists_with_products_and_numbers_are_the_network_s() -> None:
    """A cross that is a product reads the request's ids again, of every candidate."""
    job, rng = task(), np.random.default_rng(2)
    product = FeatureField(name="match", kind="cross", side="cross", parts=("taste", "kind"),
                           representation="product")
    numbers = [FeatureField(name="age", kind="numeric", side="user"),
               FeatureField(name="price", kind="numeric", side="item")]
    spec = FeatureSpec(fields=(*job.spec.fields, *numbers, product))
    items = replace(job.sources.items, dense=rng.normal(size=(len(job.sources.items.ids), 1)).astype(np.float32))
    rows = job.evaluated.rows.copy()
    rows[::2, -7:] = -1
    lists = replace(job.evaluated, rows=rows, request_dense=rng.normal(size=(len(rows), 1)).astype(np.float32))
    network = Fscd(spec, 4, (8,))
    whole = score(network, items, lists)
    part = batch(items, lists, np.array([20, 21]))
    with torch.inference_mode():
        alone = network.eval()(part.request, part.candidate).numpy().reshape(2, -1)
    there = rows[[20, 21]] >= 0
    assert not there.all()
    np.testing.assert_allclose(whole[[20, 21]][there], alone[there], atol=1e-5)
