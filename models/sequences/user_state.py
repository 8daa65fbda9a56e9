"""A trained sequence encoder as it serves: the state of one user from what they took last."""

from __future__ import annotations

import numpy as np
import torch

from models.sequences.encoder import SequenceEncoder


class UserState:
    """Of `network`, which is in evaluation mode. `length`: how many of the latest items it reads."""

    def __init__(self, network: SequenceEncoder) -> None:
        self._network, self.length = network, network.settings.length

    @torch.inference_mode()
    def __call__(self, items: np.ndarray) -> np.ndarray:
        """Ids int64 [n], oldest first, at least one -> float32 [width]."""
        latest = torch.from_numpy(items[-self.length:])[None]
        return self._network(latest)[0, -1].numpy()
