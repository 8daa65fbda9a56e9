"""A phase closes when enough have replied and the others had as long again."""

from __future__ import annotations

import time

import pytest
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

from federated.flower.in_process_grid import InProcessGrid
from federated.flower.stragglers import Closing, at_once, gathered

QUICK = Closing(enough=0.75, grace=0.2, poll=0.01)


class SlowGrid(InProcessGrid):
    """Node n replies `delays[n]` seconds after it was asked; never where there is none."""

    def __init__(self, delays):
        super().__init__(ClientApp(), {node: node for node in range(4)}, {})
        self.delays, self.fetched = delays, []

    def push_messages(self, messages):
        self.asked = time.monotonic()
        self.nodes = {f"m{message.metadata.dst_node_id}": message for message in messages}
        return list(self.nodes)

    def pull_messages(self, message_ids):
        come = [name for name in sorted(message_ids) if self.delays.get(int(name[1:]), 1e9)
                < time.monotonic() - self.asked]
        self.fetched += come
        return [self._reply(name) for name in come]

    def _reply(self, name):
        made = Message(RecordDict(), reply_to=self.nodes[name])
        made.metadata.__dict__["_reply_to_message_id"] = name
        return made


def messages():
    return [Message(RecordDict(), node, "query.keys", group_id="1") for node in range(4)]


@pytest.mark.parametrize(("delays", "replied"), [
    ({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, 4),
    ({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.1}, 4),  # within the grace
    ({0: 0.0, 1: 0.0, 2: 0.0, 3: 5.0}, 3),  # a straggler is left behind
    ({0: 0.0, 1: 0.0, 2: 0.0}, 3),  # and so is a dead node
])
def test_stragglers_do_not_hold_up_a_phase(delays, replied):
    started = time.monotonic()
    assert len(list(gathered(SlowGrid(delays), messages(), 60.0, QUICK))) == replied
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(("last", "waits"), [(("one",), False), (("other",), True), (("one", "other"), False)])
def test_of_all_that_are_asked_a_thing_there_are_to_be_enough(last, waits):
    """Of the other thing one more is asked, and of four that are asked it three are enough, but not none of one."""
    started, grid = time.monotonic(), SlowGrid({0: 0.0, 1: 0.0, 2: 0.0})
    both = ("one", "other") if len(last) == 2 else ("one",)
    found = gathered(grid, messages(), 0.8, QUICK, lambda message: last if message.metadata.dst_node_id == 3 else both)
    assert len(list(found)) == 3
    assert (time.monotonic() - started >= 0.8) == waits


def test_too_few_are_waited_for_until_the_time_limit():
    started = time.monotonic()
    assert len(list(gathered(SlowGrid({0: 0.0, 1: 0.0}), messages(), 0.5, QUICK))) == 2
    assert time.monotonic() - started >= 0.5


def test_replies_are_handed_on_while_others_are_waited_for_and_messages_are_still_made():
    """Node 3 replies only once what nodes 0 to 2 said has been handled."""
    made, handled = list[int](), list[int]()

    class Grid(SlowGrid):
        def push_messages(self, messages):
            names = [f"m{message.metadata.dst_node_id}" for message in messages]
            self.nodes = {**getattr(self, "nodes", {}), **dict(zip(names, messages, strict=True))}
            return names

        def pull_messages(self, message_ids):
            come = [name for name in message_ids if name != "m3" or len(handled) == 3]
            return [self._reply(name) for name in come]

    def making():
        for message in messages():
            assert len(made) - len(handled) <= 1  # sent two at a time, and those before are done with
            made.append(message.metadata.dst_node_id)
            yield message

    for reply in gathered(Grid({}), making(), 5.0, Closing(enough=1.0, poll=0.0), together=2):
        handled.append(reply.metadata.src_node_id)
    assert sorted(handled) == made == [0, 1, 2, 3]
    assert handled[-1] == 3


def test_nodes_of_one_process_reply_as_they_are_asked_a_few_at_a_time():
    grid = InProcessGrid(ClientApp(), {node: node for node in range(4)}, {}, lose=lambda phase, node: node == 2)
    sent = list[int]()

    def making():
        for message in messages():
            sent.append(message.metadata.dst_node_id)
            yield message

    replied = [(reply.metadata.src_node_id, len(sent)) for reply in at_once(grid, making(), together=2)]
    assert replied == [(0, 2), (1, 2), (3, 4)]
