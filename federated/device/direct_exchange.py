"""Clients in this process without a wire: messages are handed over, nothing is lost and nothing counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from federated.protocol.messages import Message, Phase
from federated.protocol.round_client import RoundClient


class DirectExchange:
    """`client_of` makes the client of a number, once. A client's refusal is raised as it is."""

    def __init__(self, client_of: Callable[[int], RoundClient]) -> None:
        self._client_of = cache(client_of)
        self._memory: dict[int, Message] = defaultdict(dict)

    def __call__(self, phase: Phase, messages: Mapping[int, Message]) -> Iterator[tuple[int, Message]]:
        for number, message in messages.items():
            client, memory = self._client_of(number), self._memory[number]
            reply, self._memory[number] = client.handle(phase, message, memory)
            yield number, reply
