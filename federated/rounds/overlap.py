"""Two rounds at a time: while one chooses its rows, trains and is opened, the next one is prepared.

    round r      keys shares union agree open choose train agree open
    round r + 1                               keys   shares union agree open choose train ..
    round r + 2                                                              keys   ..

Nothing before `train` needs the model, so nine phases take five exchanges, and with rows that are public five take
three: the phases of one column travel in the same messages (federated/protocol/messages.py). Of one client they
are handled one after the other; a client that is asked in one of the two rounds alone is sent its part.
"""

from __future__ import annotations

from collections.abc import Callable

from contracts.errors import RoundAbandoned
from federated.protocol.messages import Exchange, Phase
from federated.protocol.questions import Question, Steps, answer
from federated.protocol.round_server import OpenedRound, Prepared, RoundServer

STARTED_BESIDE: tuple[Phase, ...] = ("choose", "train")  # whichever of them a round comes to first


class Attempt:
    """At a round of these clients; `waited`: rounds that it has been waited for clients until then."""

    def __init__(self, server: RoundServer, clients: list[int], waited: int = 0) -> None:
        self.server, self.clients, self.waited = server, clients, waited
        self._steps = server.prepare(clients)
        self._ended: Prepared | RoundAbandoned | None = None

    def question(self) -> Question | None:
        """What is asked next before training; None where all is prepared, or the attempt is abandoned."""
        if self._ended is None:
            try:
                return next(self._steps)
            except StopIteration as end:
                self._ended = end.value
            except RoundAbandoned as error:
                self._ended = error
        return None

    def rest(self) -> Steps[OpenedRound]:
        """What is left of it. Raises RoundAbandoned, also where it was abandoned before."""
        while (question := self.question()) is not None:
            yield question
        if not isinstance(self._ended, Prepared):
            raise self._ended or RoundAbandoned(f"round {self.server.number} was never begun")
        return (yield from self.server.finish(self._ended))


def carried_through(
    exchange: Exchange, attempt: Attempt, following: Callable[[], Attempt | None]
) -> tuple[OpenedRound, Attempt | None]:
    """The attempt's round, and how far the `following` one is by then (None: none is begun). Raises RoundAbandoned
    where this one is; then the other is forgotten."""
    steps, ahead, begun = attempt.rest(), None, False
    while True:
        try:
            question = next(steps)
        except StopIteration as end:
            return end.value, ahead
        if not begun and question.phase in STARTED_BESIDE:
            ahead, begun = following(), True
        beside = ahead.question() if ahead is not None else None
        answer(exchange, question, *([beside] if beside is not None else []))
