"""What every channel of a bundle keeps to."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from serving.bundle.channel import CountChannel, NearestChannel
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle

RECENT = ("i12", "i11", "i10")


@pytest.fixture(scope="module")
def factors(publish_bundle):
    """A bundle with channels that the shared one lacks."""
    wanted = {"light_gcn": {"quota": 9, "settings": {"epochs": 5}}, "recent_popularity": {"quota": 9}}
    if find_spec("implicit"):
        wanted |= {"als": {"quota": 9, "settings": {"width": 8}}, "bpr": {"quota": 9, "settings": {"width": 8}}}
    return LoadedBundle.load(publish_bundle(retrieve={"channels": wanted}))


def test_factorisations_are_parity_checked_and_bring_what_they_know(factors):
    recent, known = factors.items.rows(RECENT), np.arange(75)
    for channel in factors.channels:
        assert (channel.parity.rows, channel.parity.mismatches) == (64, 0)
        best, scores = channel.best(recent, 75, None), channel.scores(recent, known)
        assert best.tolist() == np.argsort(-scores, kind="stable")[:len(best)].tolist()
        odd = ItemSet.of(np.arange(len(factors.items)) % 2 == 1)
        assert channel.best(recent, 75, odd).tolist() == [row for row in best.tolist() if row % 2]


def test_sums_that_are_no_log_probabilities_know_no_bid(factors):
    channel = next(channel for channel in factors.channels if channel.name == "light_gcn")
    recent = factors.items.rows(RECENT)
    assert channel.best(recent, 20, None, True).tolist() == channel.best(recent, 20, None, False).tolist()


def test_counts_are_the_same_for_everybody():
    channel = CountChannel(name="recent_popularity", counts=np.array([2, 0, 5, 2], np.float32))
    nobody = np.empty(0, np.int64)
    assert channel.best(nobody, 9, None).tolist() == [2, 0, 3]
    assert channel.best(np.array([2]), 2, ItemSet.of(np.array([True, True, False, True]))).tolist() == [0, 3]
    assert channel.scores(nobody, np.array([3, 1])).tolist() == [2, 0]


def test_counts_are_read_as_far_as_a_filter_makes_it_necessary():
    class Watched(ItemSet):
        looked = 0

        def contains(self, rows: np.ndarray) -> np.ndarray:
            Watched.looked += len(rows)
            return super().contains(rows)

    items = 10_000
    channel = CountChannel(name="recent_popularity", counts=np.arange(items, 0, -1).astype(np.float32))
    every = np.arange(items)
    for allowed, most in (((every % 2 == 1), 100), ((every == 9_000), 2 * items), ((every < 0), 2 * items)):
        Watched.looked = 0
        found = channel.best(every[:0], 10, Watched.of(allowed))
        assert found.tolist() == np.flatnonzero(allowed)[:10].tolist()
        assert Watched.looked <= most
    assert len(channel.best(every[:0], 0, Watched.of(every % 2 == 1))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sasrec", "ease", "item_cosine"])
def test_the_best_are_distinct_admitted_and_in_the_order_of_their_scores(with_channel, name):
    channel = next(channel for channel in with_channel.channels if channel.name == name)
    recent, mask = with_channel.items.rows(RECENT), np.arange(len(with_channel.items)) % 2 == 0
    for allowed in (None, ItemSet.of(mask)):
        best = channel.best(recent, 6, allowed)
        assert 0 < len(best) <= 6
        assert len(set(best.tolist())) == len(best)
        assert allowed is None or mask[best].all()
        assert (np.diff(channel.scores(recent, best)) <= 1e-5).all()


@pytest.mark.parametrize("name", ["sasrec", "ease", "item_cosine"])
def test_what_nobody_took_is_not_brought(with_channel, name):
    channel = next(channel for channel in with_channel.channels if channel.name == name)
    new = with_channel.items.rows([f"i{number}" for number in range(75, 80)])
    assert not np.isin(channel.best(with_channel.items.rows(RECENT), 80, None), new).any()
    assert len(channel.best(new, 80, None)) == 0


def rows_of(bundle, *keys):
    return bundle.items.rows(keys)


def test_what_follows_on_the_ring_comes_first(with_channel):
    channel = with_channel.channels[0]
    best = channel.best(rows_of(with_channel, "i12", "i11", "i10"), 3, None)  # newest first
    assert with_channel.items.keys_of(best[:1]) == ["i13"]


def test_only_items_that_the_encoder_knows_come(with_channel):
    channel = with_channel.channels[0]
    best = channel.best(rows_of(with_channel, "i10"), len(with_channel.items), None)
    new = rows_of(with_channel, *(f"i{number}" for number in range(75, 80)))
    assert len(best) == 75
    assert not np.isin(new, best).any()


def test_filters_hold(with_channel):
    channel = with_channel.channels[0]
    mask = np.zeros(len(with_channel.items), dtype=bool)
    mask[::7] = True
    best = channel.best(rows_of(with_channel, "i10"), 5, ItemSet.of(mask))
    assert len(best) == 5
    assert mask[best].all()


def test_by_value_the_bid_counts_as_log_odds(with_channel):
    channel = with_channel.channels[0]
    recent = rows_of(with_channel, "i10")
    everything = np.arange(75)
    scores = channel.scores(recent, everything)
    plain, valued = (channel.best(recent, 75, None, by_value) for by_value in (False, True))
    assert plain.tolist() == np.argsort(-scores, kind="stable").tolist()
    value = scores + np.log(np.asarray(with_channel.bids)[:75])
    assert np.all(np.diff(value[valued]) <= 1e-4)


def test_a_history_of_unknown_items_has_no_vector(with_channel):
    channel = with_channel.channels[0]
    assert channel.vector(rows_of(with_channel, "i79")) is None
    assert len(channel.best(rows_of(with_channel, "i79"), 5, None)) == 0


def test_new_items_in_a_history_are_passed_over(with_channel):
    channel = with_channel.channels[0]
    with_new, without = (channel.vector(rows_of(with_channel, *keys)) for keys in (("i79", "i10", "i09"),
                                                                                   ("i10", "i09")))
    np.testing.assert_array_equal(with_new, without)


CHANNEL = NearestChannel(
    name="ease", nearest=np.array([[1, 2], [2, 3], [3, -1], [-1, -1]], np.int32),
    weights=np.array([[0.5, 0.25], [0.5, 0.125], [1.0, 0.0], [0.0, 0.0]], np.float32))


def test_weights_of_the_recent_items_add_up():
    recent = np.array([0, 1])
    assert CHANNEL.scores(recent, np.array([0, 1, 2, 3])).tolist() == [0.0, 0.5, 0.75, 0.125]
    assert CHANNEL.best(recent, 9, None).tolist() == [2, 1, 3]
    assert CHANNEL.best(recent, 2, None).tolist() == [2, 1]


def test_an_item_taken_twice_counts_once():
    assert CHANNEL.scores(np.array([0, 0]), np.array([1])).tolist() == [0.5]


def test_filters_come_before_the_count():
    assert CHANNEL.best(np.array([0, 1]), 1, ItemSet.of(np.array([True, True, False, True]))).tolist() == [1]


def test_an_item_that_speaks_for_none_brings_none():
    assert CHANNEL.best(np.array([3]), 5, None).tolist() == []
    assert CHANNEL.scores(np.array([3]), np.array([0, 3])).tolist() == [0.0, 0.0]
