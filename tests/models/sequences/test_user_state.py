from __future__ import annotations

import numpy as np
import pytest
import torch

from models.interactions.interactions import from_lists
from models.sequences import user_state
from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.sequences.numpy_blocks import Norm
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings
from models.sequences.user_state import NumpyState, UserState


def network(told: tuple[int, ...] = (), **shape: object) -> SequenceEncoder:
    """Every weight drawn, so that none is 0 or 1 by its start."""
    torch.manual_seed(3)
    made = SequenceEncoder(20, EncoderSettings.model_validate({"width": 8, "heads": 2, "length": 4, **shape}), told)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.5)
    return made.eval().requires_grad_(False)


@pytest.mark.parametrize("block", ["transformer", "ligr", "hstu"])
@pytest.mark.parametrize("places", ["learned", "distance", "none"])
@pytest.mark.parametrize("blocks", [0, 1, 2])
@pytest.mark.parametrize("kind", [UserState, NumpyState])
def test_the_state_served_is_the_one_that_scores_in_training(block, places, blocks, kind):
    made = network(blocks=blocks, block=block, places=places)
    model = SequenceRetriever(SequenceSettings(encoder=made.settings), 0)
    model.network = made
    log = from_lists([[2, 5, 7], [9], [3, 3, 4, 5, 6, 7, 8]], 20)
    state, vectors = kind(made), made.vectors().numpy()
    served = np.stack([vectors @ state(log.of(user)) for user in range(3)])
    np.testing.assert_allclose(served, model.scores(np.arange(3), log).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 0.07])
@pytest.mark.parametrize("block", ["transformer", "ligr", "hstu"])
def test_what_is_told_of_events_counts_and_what_is_not_is_unknown(block, temperature):
    made = network((6, 4), block=block, temperature=temperature, length=200)
    items, random = np.arange(2, 20), np.random.default_rng(0)
    events = np.stack([random.integers(1, 6, 18), random.integers(1, 4, 18)], 1)
    for told in (events, None, np.ones_like(events)):
        np.testing.assert_allclose(NumpyState(made)(items, told), UserState(made)(items, told), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(NumpyState(made)(items), NumpyState(made)(items, np.ones_like(events)))
    assert np.abs(NumpyState(made)(items, events) - NumpyState(made)(items)).max() > 0.01


def test_histories_up_to_two_hundred_are_read_whole():
    made, items = network(length=200), 2 + np.random.default_rng(1).integers(0, 18, 250)
    np.testing.assert_allclose(NumpyState(made)(items), UserState(made)(items[-200:]), rtol=1e-4, atol=1e-5)
    assert np.abs(NumpyState(made)(items[-200:]) - NumpyState(made)(items[-199:])).max() > 1e-4


def test_numpy_serves_and_torch_where_numpy_says_something_else(monkeypatch, caplog):
    made = network()
    assert isinstance(user_state.served(made), NumpyState)
    monkeypatch.setattr(Norm, "__call__", lambda self, x: x)
    assert isinstance(user_state.served(made), UserState)
    assert "served by torch" in caplog.text
