from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.errors import SluiceError
from contracts.features.feature_spec import FIRST_ID
from models.interactions.evaluate import evaluate
from models.retrieval import registry
from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings, average, some_untold
from tests.models.interaction_world import ITEMS, ring_split, told_halves

QUICK = SequenceSettings(encoder=EncoderSettings(width=16), epochs=30, batch=64, learning_rate=1e-2, negatives=64,
                         validate_every=2, patience=15)


@pytest.mark.slow
@pytest.mark.parametrize("block", ["transformer", "ligr", "hstu"])
def test_what_follows_on_a_ring_is_learned(block):
    split = ring_split()
    chosen = QUICK.model_copy(update={"encoder": EncoderSettings(width=16, block=block)})
    model = SequenceRetriever(chosen, 0)
    model.fit(split)
    found = model.scores(split.test.asked, split.test.history)
    found[:, :2] = -torch.inf
    hits = (found.argmax(1).numpy() == split.test.targets.items).mean()
    assert hits > 0.75  # 0.9 of the steps are the likely one, of 24


@pytest.mark.parametrize("gaps", [True, False])
def test_what_is_told_of_events_decides_where_it_says_what_follows(gaps):
    """And where it is not told, nothing does."""
    split = told_halves(gaps=gaps)
    model = SequenceRetriever(QUICK.model_copy(update={"untold": 0.3}), 0)
    model.fit(split)
    asked, targets, half = split.test.asked, split.test.targets.items, FIRST_ID + ITEMS // 2
    for told, least, most in ((split.test.history_of(asked).told, 0.85, 1.0), (None, 0.3, 0.7)):
        found = model.scores(asked, replace(split.test.history_of(asked), told=told))
        found[:, :2] = -torch.inf
        assert least < ((found.argmax(1).numpy() < half) == (targets < half)).mean() <= most


def test_sequences_are_told_as_often_as_asked_for():
    events = torch.randint(2, 9, (4000, 3, 2))
    events[:, 2] = 0
    torch.manual_seed(0)
    found = some_untold(events, 0.25)
    unknown = found[:, :2] == 1
    assert torch.equal(unknown[:, 0], unknown[:, 1])  # of a sequence all or none
    torch.testing.assert_close(unknown[:, 0].float().mean(0), torch.full((2,), 0.25), atol=0.03, rtol=0)
    assert torch.equal(found[~(found == 1)], events[~(found == 1)])


def test_the_network_has_the_width_of_its_log(monkeypatch):
    split = ring_split(20)
    monkeypatch.setattr("models.sequences.encoder.MANY", len(split.train.items))
    for users, width in ((20, 128), (10, 64)):
        model = SequenceRetriever(SequenceSettings(epochs=1), 0)
        model.fit(ring_split(users))
        assert model.network.vectors().shape[1] == width


def test_the_best_epoch_is_kept():
    seen: list[tuple[int, float]] = []
    split = ring_split(40)
    model = SequenceRetriever(QUICK, 0, lambda epoch, loss, ndcg: seen.append((epoch, ndcg)))
    fitted = model.fit(split)
    assert fitted.rounds == max(seen, key=lambda entry: entry[1])[0]
    found = evaluate(model, split.validation, split.train.counts())
    assert found.at["10"].ndcg == pytest.approx(max(ndcg for _, ndcg in seen))


def test_patience_ends_training():
    seen: list[int] = []
    slow = QUICK.model_copy(update={"learning_rate": 1e-12, "patience": 2, "validate_every": 1})
    SequenceRetriever(slow, 0, lambda epoch, loss, ndcg: seen.append(epoch)).fit(ring_split(30))
    assert seen == [1, 2, 3]


def test_averaged_weights_trail_the_trained_ones():
    one, other = (SequenceEncoder(5, EncoderSettings(width=2, blocks=0)) for _ in range(2))
    before = one.items.weight.detach().clone()
    average(one, other, 0.75)
    torch.testing.assert_close(one.items.weight.detach(), 0.75 * before + 0.25 * other.items.weight.detach())
    average(one, other, 0.0)
    assert torch.equal(one.items.weight, other.items.weight)


def test_a_loss_that_is_not_finite_is_refused():
    wild = QUICK.model_copy(update={"learning_rate": 1e30})
    with pytest.raises(SluiceError, match="learning_rate"):
        SequenceRetriever(wild, 0).fit(ring_split(30))


def test_unknown_items_of_a_history_are_learned_to_be_read():
    split = ring_split(30)
    fixed, moved = (SequenceRetriever(QUICK.model_copy(update={"unknown_items": rate, "epochs": 1}), 0)
                    for rate in (0.0, 0.5))
    for model in (fixed, moved):
        model.fit(split)
    torch.manual_seed(0)
    start = SequenceEncoder(split.train.table, QUICK.encoder).items.weight[1]
    assert torch.equal(fixed.network.items.weight[1], start)
    assert not torch.equal(moved.network.items.weight[1], start)


def test_who_asks_is_not_read():
    split = ring_split(30)
    model = registry.build("sasrec", 0, {"epochs": 1})
    model.fit(split)
    history = split.test.history.rows(np.array([4]))
    assert torch.equal(model.scores(np.array([4]), history), model.scores(np.array([9]), history))
