"""A trained sequence encoder as it serves: the state of one user from what they took last.

`served` gives the encoder in numpy, which makes the last place alone; the network itself, operator by operator, is what
that is checked against, and what serves in its place where it says something else.
"""

from __future__ import annotations

import logging

import numpy as np
import torch

from contracts.features.feature_spec import FIRST_ID
from models.sequences.encoder import SequenceEncoder
from models.sequences.numpy_blocks import NUMPY_BLOCKS, Norm, array

TOLERANCE = 1e-4  # of the length of a state
SHORTEST = 1e-12  # of a vector that is brought to length 1, as torch has it
log = logging.getLogger("sluice.serving")


class UserState:
    """Of `network`, which is in evaluation mode. `length`: how many of the latest items it reads."""

    def __init__(self, network: SequenceEncoder) -> None:
        self._network, self.length = network, network.settings.length

    @torch.inference_mode()
    def __call__(self, items: np.ndarray, events: np.ndarray | None = None) -> np.ndarray:
        """Ids int64 [n], oldest first, at least one, and what is told of them, int64 [n, E] -> float32 [width]."""
        latest = torch.from_numpy(items[-self.length:])[None]
        told = None if events is None else torch.from_numpy(events[-self.length:])[None]
        return self._network(latest, told)[0, -1].numpy()


class NumpyState:
    """The same, in numpy."""

    def __init__(self, network: SequenceEncoder) -> None:
        self.length, self._temperature = network.settings.length, network.settings.temperature
        self._items, self._told = array(network.items.weight), [array(one.weight) for one in network.told]
        self._places = None if network.places is None else array(network.places.weight)
        self._blocks = [NUMPY_BLOCKS[network.settings.block](block) for block in network.blocks]
        self._norm = Norm(network.norm)

    def __call__(self, items: np.ndarray, events: np.ndarray | None = None) -> np.ndarray:
        """As UserState's."""
        x = self._inputs(items[-self.length:], None if events is None else events[-self.length:])
        for block in self._blocks[:-1]:
            x = block.every(x)
        state = self._norm(self._blocks[-1].last(x) if self._blocks else x[-1])
        if self._temperature:
            state /= np.float32(max(float(np.sqrt(state @ state)), SHORTEST) * self._temperature)
        return state

    def _inputs(self, items: np.ndarray, events: np.ndarray | None) -> np.ndarray:
        x = self._items[items]
        for place, table in enumerate(self._told):
            x += table[1] if events is None else table[events[:, place]]
        if self._places is not None:
            x += self._places[:len(items)]
        return x


def served(network: SequenceEncoder) -> UserState | NumpyState:
    """In numpy; the network itself where that says something else of a history as long as it reads."""
    plain, fast = UserState(network), NumpyState(network)
    items = FIRST_ID + np.arange(network.settings.length) % max(network.items.num_embeddings - FIRST_ID, 1)
    expected = plain(items)
    gap = float(np.abs(fast(items) - expected).max() / max(float(np.sqrt(expected @ expected)), SHORTEST))
    if gap <= TOLERANCE:
        return fast
    log.warning("an encoder in numpy is off by %.2g of its state's length, above %g; it is served by torch", gap,
                TOLERANCE)
    return plain
