"""Which node speaks for which client: what nodes sign is believed, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp

from federated.flower.array_records import from_records, to_records
from federated.flower.in_process_grid import InProcessGrid
from federated.flower.seats import SEAT, TRIES, Seats, seat_reply
from federated.flower.stragglers import Closing
from tests.federated.local_exchange import IDENTITIES, PUBLISHED

CLIENTS = 4


def app_of(changed=lambda number, reply: reply):
    """Nodes that answer as the client of their partition; `changed` by one that lies."""
    app = ClientApp()

    @app.query(SEAT)
    def seat(message, context):
        number = int(context.node_config["partition-id"])
        context.state["asked"] = to_records({"asked": np.ones(1)})["arrays"]
        return Message(to_records(changed(number, seat_reply(from_records(message.content), IDENTITIES[number]))),
                       reply_to=message)

    return app


def seats_of(app, notes, nodes=None):
    grid = InProcessGrid(app, nodes or {number + 70: number for number in range(CLIENTS)}, {})
    return Seats(grid, PUBLISHED[:CLIENTS], Closing(), notes.append), grid


def test_a_client_is_found_by_its_signature_whatever_its_node_is_called():
    notes = list[str]()
    seats, grid = seats_of(app_of(), notes, {9: 2, 7: 0, 88: 3})
    assert seats.there() == [0, 2, 3]
    assert [seats[client] for client in (0, 2, 3)] == [7, 9, 88]
    grid.contexts[5] = grid.contexts.pop(9)  # started anew
    grid.contexts[5].node_id = 5
    del grid.contexts[7]
    assert seats.there() == [2, 3]
    assert seats[2] == 5
    assert not notes


def test_a_client_that_has_left_keeps_its_last_node():
    """What was made for it before is sent, and lost."""
    seats, grid = seats_of(app_of(), [])
    seats.there()
    left = grid.contexts.pop(71)
    for _ in range(2):
        assert seats.there() == [0, 2, 3]
        assert seats[1] == 71
    grid.contexts[5], left.node_id = left, 5
    assert seats.there() == [0, 1, 2, 3]
    assert seats[1] == 5
    with pytest.raises(KeyError):
        seats[CLIENTS]


def posing(number, reply):
    return reply | {"signer": np.array(0, np.int32)} if number == 1 else reply


def garbage(number, reply):
    return {"signer": np.array([1, 2])} if number == 1 else reply


def stranger(number, reply):
    return reply | {"signer": np.array(CLIENTS, np.int32)} if number == 1 else reply


@pytest.mark.parametrize("changed", [posing, garbage, stranger])
def test_a_node_that_lies_gets_no_seat_and_takes_nobodys(changed):
    notes = list[str]()
    seats, _ = seats_of(app_of(changed), notes)
    assert seats.there() == [0, 2, 3]
    assert seats[0] == 70
    assert len(notes) == 1
    for _ in range(5):
        seats.there()
    assert len(notes) == TRIES  # and is not asked for ever


def test_of_two_nodes_of_one_client_the_later_one_is_asked():
    notes = list[str]()
    seats, grid = seats_of(app_of(), notes)
    seats.there()
    grid.contexts[99] = InProcessGrid(app_of(), {99: 2}, {}).contexts[99]
    for _ in range(4):
        assert seats.there() == [0, 1, 2, 3]
        assert seats[2] == 99
    del grid.contexts[99]  # and when it leaves, the one before it
    assert seats.there() == [0, 1, 2, 3]
    assert seats[2] == 72


def watched(monkeypatch, grid):
    """The nodes that are asked, as they are."""
    asked, push = list[int](), grid.push_messages

    def pushed(messages):
        asked.extend(message.metadata.dst_node_id for message in messages)
        return push(messages)

    monkeypatch.setattr(grid, "push_messages", pushed)
    return asked


def test_a_silent_node_holds_nobody_up_and_its_answer_counts_when_it_comes(monkeypatch):
    notes = list[str]()
    seats, grid = seats_of(app_of(), notes)
    seats.closing = Closing(grace=0.0, poll=0.0)
    kept, pull = list[Message](), grid.pull_messages

    def late(names):
        come = list(pull(names))
        kept.extend(reply for reply in come if reply.metadata.src_node_id == 71)
        return [reply for reply in come if reply.metadata.src_node_id != 71]

    monkeypatch.setattr(grid, "pull_messages", late)
    asked = watched(monkeypatch, grid)
    assert seats.there() == [0, 2, 3]
    assert seats.there() == [0, 2, 3]
    assert len(asked) == CLIENTS  # it is not asked again while it may still answer
    monkeypatch.setattr(grid, "pull_messages", lambda names: kept)
    assert seats.there() == [0, 1, 2, 3]
    assert seats[1] == 71
    assert not notes


def test_a_node_that_stays_silent_is_asked_as_often_as_any_and_no_more(monkeypatch):
    monkeypatch.setattr("federated.flower.seats.SECONDS", 0.0)
    seats, grid = seats_of(app_of(), [])
    seats.closing = Closing(grace=0.0, poll=0.0)
    monkeypatch.setattr(grid, "lose", lambda phase, node: node == 71)
    asked = watched(monkeypatch, grid)
    for _ in range(TRIES + 2):
        assert seats.there() == [0, 2, 3]
    assert asked.count(71) == TRIES


def test_a_question_that_flower_holds_no_more_is_told_of_once_and_asked_anew(monkeypatch):
    """Its answer to every look at such a message has no group."""
    notes, pull = list[str](), InProcessGrid.pull_messages
    seats, grid = seats_of(app_of(), notes)
    seats.closing = Closing(grace=0.5, poll=0.0)
    gone = list[Message]()

    def forgotten(names):
        come = list(pull(grid, names))
        gone.extend(reply for reply in come if reply.metadata.src_node_id == 71)
        for reply in gone:
            reply.metadata.__dict__["_group_id"] = ""
        return [reply for reply in come if reply not in gone] + [
            reply for reply in gone if reply.metadata.reply_to_message_id in names]

    monkeypatch.setattr(grid, "pull_messages", forgotten)
    assert seats.there() == [0, 2, 3]
    assert notes == ["node 71 has no seat: it replies not what it was asked"]
    monkeypatch.undo()
    assert seats.there() == [0, 2, 3]  # only who was never asked is waited for
    assert seats.there() == [0, 1, 2, 3]


def test_a_node_that_comes_back_is_asked_again():
    notes, silent = list[str](), [True]
    seats, grid = seats_of(app_of(lambda number, reply: garbage(number, reply) if silent[0] else reply), notes)
    for _ in range(TRIES + 1):
        assert seats.there() == [0, 2, 3]
    context = grid.contexts.pop(71)
    seats.there()
    silent[0], grid.contexts[71] = False, context
    assert seats.there() == [0, 1, 2, 3]


def test_what_one_run_was_told_is_of_no_use_in_another():
    said = dict[int, dict[str, np.ndarray]]()
    first, _ = seats_of(app_of(lambda number, reply: said.setdefault(number, reply)), [])
    first.there()
    notes = list[str]()
    second, _ = seats_of(app_of(lambda number, reply: said[number]), notes)
    assert second.there() == []
    assert len(notes) == CLIENTS
