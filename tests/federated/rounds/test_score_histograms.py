"""Counts that clients add up, against the rows they come from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import DataError, ProtocolError
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import SamplesByUser, federated_spec
from federated.protocol.local_update import LocalUpdate, update_words
from federated.protocol.plan import ATTEMPTS
from federated.rounds.score_histograms import (
    BINS,
    LIMIT,
    Histograms,
    HistogramTrainer,
    count,
    histogram_plan,
    item_count,
    middles,
    model_as_vector,
    model_of,
)
from federated.rounds.settings import HISTOGRAMS, SCORES
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.layers.embedding import item_slot
from tests.federated import small_world
from tests.federated.local_exchange import PUBLISHED


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    config, out = small_world.config(), small_world.write(tmp_path_factory.mktemp("out"))
    spec = federated_spec(config, small_world.spec())
    samples = SamplesByUser(ExampleSet(out.examples("train"), spec))
    torch.manual_seed(2)
    return config, spec, FederatedNetworks(spec, config), samples.of(samples.users[0])


def test_every_row_is_in_one_bin_of_each_scorer_and_at_its_item(world):
    _, spec, networks, batch = world
    counted, clicks = count(networks, spec, batch), int(batch.label.sum())
    assert counted.rows.sum(axis=1).tolist() == [len(batch.label)] * 2
    assert counted.clicks.sum(axis=1).tolist() == [clicks] * 2
    assert (counted.clicks <= counted.rows).all()
    slot = item_slot(spec)
    assert slot is not None
    items = batch.candidate.ids[:, slot.start].numpy()
    assert (counted.shown == np.bincount(items, minlength=item_count(spec))).all()
    assert counted.clicked.sum() == clicks


def test_counts_in_a_row_come_back_from_the_head_of_a_longer_sum(world):
    _, spec, networks, batch = world
    counted = count(networks, spec, batch)
    again = Histograms.of_flat(np.concatenate([counted.flat() + 1e-7, np.zeros(9)]), item_count(spec))
    for name in ("rows", "clicks", "shown", "clicked"):
        assert (getattr(again, name) == getattr(counted, name)).all()


def test_a_bins_rows_stand_at_its_middle():
    assert middles()[0] == pytest.approx(-LIMIT + LIMIT / BINS)
    assert np.diff(middles()) == pytest.approx(2 * LIMIT / BINS)
    rows, clicks = np.zeros((2, BINS), int), np.zeros((2, BINS), int)
    rows[1, 7], clicks[1, 7] = 5, 2
    histograms = Histograms(rows, clicks, np.zeros(1), np.zeros(1))
    logits, labels = histograms.as_rows("pre_ranker")
    assert logits.tolist() == [middles()[7]] * 5
    assert labels.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    with pytest.raises(DataError, match="no client had later rows"):
        histograms.as_rows("ranker")


def test_a_model_goes_down_as_a_vector_and_counts_come_up(world):
    config, spec, networks, batch = world
    plan = histogram_plan(HISTOGRAMS, config, spec, networks, PUBLISHED[:8])
    rows, dense = networks.read()
    vector = model_as_vector(rows, dense, plan.dense)
    other = FederatedNetworks(spec, config)
    model_of(other, vector)
    assert (other.read()[0] == rows).all()
    assert (other.read()[1] == dense).all()
    update = HistogramTrainer(other, spec, batch, True).train(ATTEMPTS, np.empty(0, int), np.empty((0, 1)), vector)
    sent = Histograms.of_flat(plan.fixed.decode(plan.fixed.encode(update.dense)), item_count(spec))
    assert (sent.flat() == count(networks, spec, batch).flat()).all()


def test_the_largest_count_that_a_client_may_have_arrives_whole_and_a_larger_one_is_refused(world):
    _, spec, networks, _ = world
    config = small_world.config(max_samples=40_000, clients=3)
    plan = histogram_plan(HISTOGRAMS, config, spec, networks, PUBLISHED[:8])
    counts = np.zeros(plan.dense)
    counts[:3] = 40_000, 16_384, 1
    update = LocalUpdate(np.zeros((0, 1)), np.zeros(0, np.int64), counts, 40_000, 40_000, 0.0)
    nothing = np.empty(0, dtype=np.int64)
    words = update_words(plan, plan.update_layout(nothing), nothing, update)
    assert (plan.fixed.decode(words[: plan.dense]) == counts).all()
    counts[0] += 1
    with pytest.raises(ProtocolError, match=r"a count of 40001 exceeds federated.max_samples 40000"):
        update_words(plan, plan.update_layout(nothing), nothing, update)


def test_a_round_about_scores_says_nothing_of_items(world):
    config, spec, networks, batch = world
    plan = histogram_plan(SCORES, config, spec, networks, PUBLISHED[:8])
    rows, dense = networks.read()
    vector = model_as_vector(rows, dense, plan.dense)
    update = HistogramTrainer(networks, spec, batch, False).train(1, np.empty(0, int), np.empty((0, 1)), vector)
    sent, whole = Histograms.of_flat(update.dense, item_count(spec)), count(networks, spec, batch)
    assert whole.shown.sum() == len(batch.label)
    assert sent.shown.sum() == sent.clicked.sum() == 0
    assert sent.auc() == whole.auc()
    assert (sent.rows == whole.rows).all()


def test_items_are_told_in_the_attempts_at_the_end_and_in_no_other_round(world):
    """A server that could ask in each round would see in two sums what the client that is in one of them holds."""
    config, spec, networks, batch = world
    plan = histogram_plan(HISTOGRAMS, config, spec, networks, PUBLISHED[:8])
    rows, dense = networks.read()
    vector = model_as_vector(rows, dense, plan.dense)
    trainer = HistogramTrainer(networks, spec, batch, True)
    nothing = np.empty(0, int), np.empty((0, 1))
    assert trainer.train(2 * ATTEMPTS - 1, *nothing, vector).kept == len(batch.label)
    for number in (ATTEMPTS - 1, 2 * ATTEMPTS, 10**6):
        with pytest.raises(ProtocolError, match="added up once, in rounds 5 to 9"):
            trainer.train(number, *nothing, vector)


def test_a_client_without_later_rows_sends_zeros(world):
    config, spec, networks, batch = world
    nothing = batch.take(torch.empty(0, dtype=torch.int64))
    plan = histogram_plan(HISTOGRAMS, config, spec, networks, PUBLISHED[:8])
    rows, dense = networks.read()
    vector = model_as_vector(rows, dense, plan.dense)
    update = HistogramTrainer(networks, spec, nothing, True).train(ATTEMPTS, np.empty(0, int), np.empty((0, 1)), vector)
    assert not update.dense.any()
    assert update.kept == 0


def test_auc_of_histograms_is_that_of_their_rows_and_calibration_that_of_their_middles(world):
    _, spec, networks, batch = world
    counted = count(networks, spec, batch)
    doubled = counted.plus(counted)
    logits, labels = counted.as_rows("ranker")
    assert counted.auc() == pytest.approx(auc(labels, logits))
    assert doubled.auc() == counted.auc()
    assert doubled.rows.sum() == 2 * counted.rows.sum()
    assert counted.predicted_over_observed() == pytest.approx((1 / (1 + np.exp(-logits))).sum() / labels.sum())
    nothing = Histograms(np.zeros((2, BINS), int), np.zeros((2, BINS), int), np.zeros(1), np.zeros(1))
    assert (nothing.auc(), nothing.predicted_over_observed()) == (None, None)
