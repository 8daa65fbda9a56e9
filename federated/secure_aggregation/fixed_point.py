"""Updates as integers: what is masked and summed are words modulo 2^32, so that sums are exact whatever the order.

    q = round(weight * clip(x, -c, c) / step)      step = c / (levels / 2 - 1)

The paper's 2^15 levels lie in [-c, c]; the weight is applied before rounding, so a heavy row is not coarser for it.
A sum of n clients with weights up to v stays below 2^31 in size when n * v * (levels / 2 - 1) < 2^31, which
`require_room` checks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contracts.errors import ConfigError, ProtocolError

WORD = np.uint32
HALF_RANGE = 2**31


@dataclass(frozen=True)
class FixedPoint:
    """`clip` is the largest magnitude c of an entry of an update."""

    clip: float
    levels: int = 2**15

    @property
    def largest(self) -> int:
        """The integer of an entry at the clip."""
        return self.levels // 2 - 1

    @property
    def step(self) -> float:
        """What one level stands for."""
        return self.clip / self.largest

    def encode(self, values: np.ndarray, weight: np.ndarray | float = 1.0) -> np.ndarray:
        """Words of the same shape; `weight` is broadcast. Raises ProtocolError on NaN or infinity."""
        if not np.isfinite(values).all():
            raise ProtocolError("an update holds NaN or infinity; lower the local learning rate")
        clipped = np.clip(values.astype(np.float64), -self.clip, self.clip)
        return as_words(np.rint(clipped * weight / self.step))

    def decode(self, words: np.ndarray) -> np.ndarray:
        """Weighted sums, float64."""
        return signed(words) * self.step

    def most_clients(self, max_weight: int) -> int:
        """Whose sum stays within the range of a word."""
        return (HALF_RANGE - 1) // (max_weight * self.largest)

    def require_room(self, clients: int, max_weight: int) -> None:
        """Raises ConfigError when a sum could leave the range of a word."""
        if clients > self.most_clients(max_weight):
            raise ConfigError(
                f"a sum of {clients} clients with weights up to {max_weight} and {self.levels} levels does not fit "
                f"in 32 bits: at most {(HALF_RANGE - 1) // (clients * self.largest)} is possible as "
                "federated.max_samples, or take fewer clients a round"
            )


def as_words(integers: np.ndarray) -> np.ndarray:
    """Integers of any sign, as floats or ints, modulo 2^32."""
    return integers.astype(np.int64).astype(WORD)


def signed(words: np.ndarray) -> np.ndarray:
    """int64 in [-2^31, 2^31) of words."""
    return words.astype(WORD).view(np.int32).astype(np.int64)
