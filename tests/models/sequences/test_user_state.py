from __future__ import annotations

import numpy as np
import pytest
import torch

from models.interactions.interactions import from_lists
from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings
from models.sequences.user_state import UserState


@pytest.mark.parametrize("block", ["transformer", "ligr", "hstu"])
@pytest.mark.parametrize("places", ["learned", "distance", "none"])
@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_the_state_served_is_the_one_that_scores_in_training(block, places, blocks):
    torch.manual_seed(3)
    shape = EncoderSettings(width=8, heads=2, blocks=blocks, block=block, places=places, length=4)
    model = SequenceRetriever(SequenceSettings(encoder=shape), 0)
    model.network = SequenceEncoder(20, shape).eval()
    log = from_lists([[2, 5, 7], [9], [3, 3, 4, 5, 6, 7, 8]], 20)
    state, vectors = UserState(model.network), model.network.vectors().detach().numpy()
    served = np.stack([vectors @ state(log.of(user)) for user in range(3)])
    np.testing.assert_allclose(served, model.scores(np.arange(3), log).numpy(), rtol=1e-5, atol=1e-5)
