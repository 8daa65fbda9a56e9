"""What the server makes of a round's average before it moves the model.

    none        x += a                                                       (FedAvg)
    momentum    m = beta1 m + a;  x += eta m                                 (FedAvgM; Hsu et al., 2019)
    adam        m = beta1 m + (1 - beta1) a;  v = beta2 v + (1 - beta2) a^2
                x += eta m / (sqrt(v) + tau)                                 (FedAdam; Reddi et al., ICLR 2021, alg. 2)

a is the average of the clients' updates, taken for the negative gradient; there is no correction of the first rounds'
bias, as in the paper. A row that no client of the round trained keeps its value and its moments: else it would drift on
with what other rounds left behind.

The server computes this from sums that it has opened anyway: it learns nothing more, and sends nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Kind = Literal["none", "momentum", "adam"]
FIRST, SECOND = "server_first_", "server_second_"


@dataclass
class ServerOptimizer:
    """`rate` eta, `beta1`, `beta2`, `tau`; parts of the model have names, each with moments of its own shape."""

    kind: Kind = "none"
    rate: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    _moments: dict[str, np.ndarray] = field(default_factory=dict)

    def step(self, part: str, average: np.ndarray, trained: np.ndarray | slice = slice(None)) -> np.ndarray:
        """What to add to the part, of the shape of `average` [R, ...]; `trained` [R]: rows that the round trained."""
        if self.kind == "none":
            return average
        step = np.zeros_like(average)
        step[trained] = self.rate * self._direction(part, average, trained)
        return step

    def _direction(self, part: str, average: np.ndarray, trained: np.ndarray | slice) -> np.ndarray:
        new = average[trained]
        first = self._moment(FIRST + part, average)
        if self.kind == "momentum":
            first[trained] = self.beta1 * first[trained] + new
            return first[trained]
        second = self._moment(SECOND + part, average)
        first[trained] = self.beta1 * first[trained] + (1 - self.beta1) * new
        second[trained] = self.beta2 * second[trained] + (1 - self.beta2) * new**2
        return first[trained] / (np.sqrt(second[trained]) + self.tau)

    def _moment(self, name: str, like: np.ndarray) -> np.ndarray:
        return self._moments.setdefault(name, np.zeros(like.shape))

    def state(self) -> Mapping[str, np.ndarray]:
        """What a restart needs beside the model."""
        return self._moments

    def restore(self, stored: Mapping[str, np.ndarray]) -> None:
        """The inverse of `state`, out of whatever was stored with it."""
        self._moments = {name: np.array(value) for name, value in stored.items() if name.startswith((FIRST, SECOND))}
