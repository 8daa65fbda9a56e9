from __future__ import annotations

import numpy as np

from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.channels_of_stored import of_stored


def test_a_channel_says_the_same_and_passes_new_items_over(with_channel: LoadedBundle) -> None:
    count = len(with_channel.items)
    recent = np.array([3, 5])
    for channel, wrapped in zip(with_channel.channels, of_stored(with_channel.channels, count), strict=True):
        allowed = np.arange(count + 16) % 2 == 0
        wanted = channel.best(recent, 5, ItemSet.of(allowed[:count]))
        np.testing.assert_array_equal(wrapped.best(np.array([3, count + 9, 5]), 5, ItemSet.of(allowed)), wanted)
        np.testing.assert_array_equal(wrapped.best(recent, 5, None), channel.best(recent, 5, None))
        scores = wrapped.scores(recent, np.array([4, count + 1]))
        assert scores[0] == channel.scores(recent, np.array([4]))[0]
        assert np.isnan(scores[1])
