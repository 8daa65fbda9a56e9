"""The server's questions in one round, phase by phase: replies that hold what they should, and who was lost when.

A reply is checked, and what it brings is added up, when it comes and not when the last has come; who is waited for
holds up nothing but the phase's end. A client that does not reply, replies late, or with something of another shape
than it declared is lost from that phase on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from contracts.errors import RoundAbandoned
from federated.protocol.messages import PHASES, Message, Phase
from federated.protocol.questions import Question, Steps

Checked = TypeVar("Checked")


class RoundPhases:
    """`lost`: phase -> clients that were lost in it; `seconds`: phase -> how long it took."""

    def __init__(self, number: int, min_clients: int) -> None:
        self.number, self.min_clients = number, min_clients
        self.lost: dict[str, list[int]] = {phase: [] for phase in PHASES}
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)

    def ask(
        self, phase: Phase, messages: Mapping[int, Message], check: Callable[[int, Message], Checked]
    ) -> Steps[dict[int, Checked]]:
        """Client -> what `check` made of its reply, called once for each as it comes; who sends nothing, or what
        `check` refuses by a ProtocolError, is lost."""
        replies = dict[int, Checked]()

        def take(client: int, reply: Message) -> None:
            replies[client] = check(client, reply)

        question = Question(phase, self.number, messages, take)
        yield question
        self.seconds[phase] += question.seconds
        self.lost[phase] += sorted(messages.keys() - replies.keys())
        return dict(sorted(replies.items()))

    def require(self, count: int, phase: Phase) -> None:
        """Raises RoundAbandoned where fewer clients are left than the plan's least."""
        if count < self.min_clients:
            raise RoundAbandoned(
                f"round {self.number}: {count} clients are left after {phase!r}, {self.min_clients} are the "
                "least; it is abandoned and changes nothing"
            )

    @contextmanager
    def timed(self, phase: Phase) -> Iterator[None]:
        """Adds the block's seconds to the phase's."""
        started = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - started
