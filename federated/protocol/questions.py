"""A round as steps: what the server asks in a phase, and how the replies to one or two such questions are had.

A round does not send its messages itself. It yields each Question and goes on when that has its replies, so that the
questions of two rounds may travel together (federated/rounds/overlap.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from contracts.errors import ProtocolError
from federated.protocol.messages import ROUND, Exchange, MadeWhenSent, Message, Phase, joined, parted_phases, scalar

Result = TypeVar("Result")


@dataclass
class Question:
    """A phase of round `number`: a message for each client, and `take` for the reply of each as it comes, which raises
    ProtocolError on one that does not hold what it should. `seconds` passed until all were there, or too late."""

    phase: Phase
    number: int
    messages: Mapping[int, Message]
    take: Callable[[int, Message], None]
    seconds: float = 0.0

    def message(self, client: int) -> Message:
        """With the round that it is about."""
        return {ROUND: scalar(self.number, np.int64), **self.messages[client]}


Steps = Generator[Question, None, Result]


def carried_out(exchange: Exchange, steps: Steps[Result]) -> Result:
    """What the steps return, each question asked alone."""
    while True:
        try:
            question = next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        answer(exchange, question)


def answer(exchange: Exchange, *questions: Question) -> None:
    """Asks one question, or two in the same messages: those of the first one's phase."""
    started, own = time.perf_counter(), questions[0].phase
    if len({question.phase for question in questions}) < len(questions):
        raise ValueError(f"two questions of the phase {own!r} do not fit into one message")
    clients = dict.fromkeys(client for question in questions for client in question.messages)
    messages = MadeWhenSent(clients, lambda client: joined(own, {
        question.phase: question.message(client) for question in questions if client in question.messages}))
    for client, reply in exchange(own, messages):
        with suppress(ProtocolError):
            parts = parted_phases(own, reply)
            for question in questions:
                _taken(question, client, parts.get(question.phase))
    for question in questions:
        question.seconds = time.perf_counter() - started


def _taken(question: Question, client: int, part: Message | None) -> None:
    if part is not None and client in question.messages:
        with suppress(ProtocolError):
            question.take(client, part)
