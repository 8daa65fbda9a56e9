"""Clients in one process, some of which die on the way; keeps what passed the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from contracts.errors import ProtocolError
from federated.protocol.local_update import LocalUpdate
from federated.protocol.messages import Message, Phase
from federated.protocol.round_client import RoundClient
from federated.secure_aggregation.identity import Identity

IDENTITIES = [Identity.draw(number) for number in range(64)]
PUBLISHED = tuple(identity.public() for identity in IDENTITIES)


class FixedTrainer:
    """A client whose update is known in advance: the oracle's side of the sum."""

    def __init__(self, held: np.ndarray, width: int, dense: int, seed: int, samples: int = 7) -> None:
        self._held, self.width, self.dense, self.seed, self._samples = held, width, dense, seed, samples
        self.last: LocalUpdate  # once it has trained

    def held(self) -> np.ndarray:
        return self._held

    def samples(self) -> int:
        return self._samples

    def train(
        self, round_number: int, places: np.ndarray, rows: np.ndarray, dense: np.ndarray, scale: float = 1.0
    ) -> LocalUpdate:
        generator = np.random.default_rng([self.seed, round_number])
        self.last = LocalUpdate(
            generator.normal(0, 0.3, (len(places), self.width)), generator.integers(1, 6, len(places)),
            generator.normal(0, 0.3, self.dense), self._samples, self._samples + 2, 0.5 * self._samples,
        )
        return self.last


def fixed_trainer(client: RoundClient) -> FixedTrainer:
    assert isinstance(client.trainer, FixedTrainer)
    return client.trainer


class LocalExchange:
    """`deaths`: phase -> clients that never answer from it on. What a test changes, it changes in `replies`."""

    def __init__(self, clients: Mapping[int, RoundClient], deaths: Mapping[str, set[int]] | None = None) -> None:
        self.clients, self.deaths = clients, deaths or {}
        self.memory: dict[int, Message] = {number: {} for number in clients}
        self.dead: set[int] = set()
        self.sent: list[tuple[Phase, int, Message, Message]] = []
        self.refusals: list[str] = []

    def __call__(self, phase: Phase, messages: Mapping[int, Message]) -> Iterable[tuple[int, Message]]:
        return self.replies(phase, messages).items()

    def replies(self, phase: Phase, messages: Mapping[int, Message]) -> dict[int, Message]:
        self.dead |= self.deaths.get(phase, set())
        replies = {}
        for number, message in messages.items():
            if number in self.dead:
                continue
            try:
                replies[number], self.memory[number] = self.clients[number].handle(phase, message, self.memory[number])
            except ProtocolError as error:
                self.refusals.append(str(error))
                continue
            self.sent.append((phase, number, message, replies[number]))
        return replies
