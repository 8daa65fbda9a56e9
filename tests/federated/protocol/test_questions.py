"""Questions of one or two rounds, and whose reply is whose."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.protocol.messages import MadeWhenSent, parted_phases
from federated.protocol.questions import Question, answer, carried_out


def asked(phase, number, clients, taken, refused=()):
    def take(client, reply):
        if client in refused:
            raise ProtocolError("no")
        taken.append((client, phase, int(reply["said"])))

    return Question(phase, number, {client: {"asks": np.array(number)} for client in clients}, take)


def saying(phase, messages):
    """Says of each part of a message of which round it was, and something that nobody asked."""
    for client in messages:
        parts = parted_phases(phase, messages[client])
        yield client, {name: np.array(int(part["round"]))
                       for own, part in parts.items() for name in ["said" if own == phase else f"{own} said"]}


def test_each_client_is_asked_in_one_message_what_it_is_asked_at_all():
    taken: list[tuple[int, str, int]] = []
    sent = {}

    def exchange(phase, messages):
        sent.update({client: parted_phases(phase, messages[client]) for client in messages})
        return saying(phase, messages)

    answer(exchange, asked("train", 5, (1, 2), taken), asked("shares", 10, (2, 3), taken))
    assert {client: list(parts) for client, parts in sent.items()} == {
        1: ["train"], 2: ["train", "shares"], 3: ["shares"]}
    assert sorted(taken) == [(1, "train", 5), (2, "shares", 10), (2, "train", 5), (3, "shares", 10)]


def test_a_message_is_made_once_a_client_and_what_fails_in_making_it_is_heard_of():
    taken: list[tuple[int, str, int]] = []
    made: list[tuple[str, int]] = []

    def of_messages_made_when_sent(phase, clients):
        def make(client):
            made.append((phase, client))
            return {"asks": np.array(5)}

        question = asked(phase, 5, clients, taken)
        question.messages = MadeWhenSent(clients, make)
        return question

    answer(saying, of_messages_made_when_sent("train", (1, 2)), of_messages_made_when_sent("shares", (2, 3)))
    assert sorted(made) == [("shares", 2), ("shares", 3), ("train", 1), ("train", 2)]
    assert len(taken) == 4
    unknown, submodels = asked("train", 5, (), taken), dict[int, dict[str, np.ndarray]]()
    unknown.messages = MadeWhenSent([9], lambda client: submodels[client])
    with pytest.raises(KeyError):
        answer(saying, unknown)


def test_what_one_question_refuses_the_other_takes_all_the_same():
    taken: list[tuple[int, str, int]] = []
    answer(saying, asked("train", 5, (1, 2), taken, refused=(2,)), asked("shares", 10, (2,), taken))
    assert taken == [(1, "train", 5), (2, "shares", 10)]


def test_what_was_not_asked_of_a_client_is_not_taken_from_it():
    taken: list[tuple[int, str, int]] = []

    def exchange(phase, messages):
        return [(1, {"said": np.array(1), "shares said": np.array(2)}), (3, {"said": np.array(3)})]

    answer(exchange, asked("train", 5, (1,), taken), asked("shares", 10, (3,), taken))
    assert taken == [(1, "train", 1)]


def test_two_questions_of_one_phase_have_no_message():
    with pytest.raises(ValueError, match="do not fit"):
        answer(saying, asked("train", 5, (1,), []), asked("train", 10, (2,), []))


def test_steps_go_on_when_they_have_their_replies():
    taken: list[tuple[int, str, int]] = []

    def steps():
        first = asked("keys", 5, (1, 2), taken)
        yield first
        assert first.seconds > 0
        assert len(taken) == 2
        yield asked("shares", 5, (1,), taken)
        return len(taken)

    assert carried_out(saying, steps()) == 3
