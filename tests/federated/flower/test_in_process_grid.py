"""Messages between nodes of one process: serialised both ways, lost where asked for, errors as replies."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp
from flwr.supercore.run import Run

from federated.flower.array_records import from_records, to_records
from federated.flower.in_process_grid import InProcessGrid

app = ClientApp()


@app.query("twice")
def twice(message, context):
    calls = from_records(context.state, "calls")["calls"] if "calls" in context.state else np.zeros(1)
    context.state["calls"] = to_records({"calls": calls + 1})["arrays"]
    value = from_records(message.content)["value"]
    return Message(to_records({"value": 2 * value, "calls": calls + 1}), reply_to=message)


@app.query("fails")
def fails(message, context):
    raise ValueError(f"partition {context.node_config['partition-id']} of {context.run_config['name']}")


def question(phase, node):
    return Message(to_records({"value": np.arange(3.0)}), node, f"query.{phase}", group_id="1")


def replies(grid, phase, nodes=(40, 41)):
    return {reply.metadata.src_node_id: reply for reply in grid.send_and_receive([question(phase, n) for n in nodes])}


def test_each_node_replies_from_a_state_of_its_own():
    grid = InProcessGrid(app, {40: 0, 41: 1}, {})
    assert sorted(grid.get_node_ids()) == [40, 41]
    replies(grid, "twice", nodes=(40,))
    content = {node: from_records(reply.content) for node, reply in replies(grid, "twice").items()}
    assert {node: arrays["calls"].item() for node, arrays in content.items()} == {40: 2.0, 41: 1.0}
    assert all(arrays["value"].tolist() == [0.0, 2.0, 4.0] for arrays in content.values())


def test_a_lost_message_gets_no_reply_and_is_not_handled():
    grid = InProcessGrid(app, {40: 0, 41: 1}, {}, lose=lambda phase, node: (phase, node) == ("twice", 41))
    assert replies(grid, "twice").keys() == {40}
    grid.lose = lambda phase, node: False
    assert from_records(replies(grid, "twice")[41].content)["calls"].item() == 1.0


def test_a_clients_exception_is_an_error_in_its_reply():
    grid = InProcessGrid(app, {40: 7}, {"name": "a run"})
    reply = replies(grid, "fails", nodes=(40,))[40]
    assert reply.has_error()
    assert "partition 7 of a run" in reply.error.reason


def test_a_reply_is_pulled_once():
    grid = InProcessGrid(app, {40: 0}, {})
    sent = list(grid.push_messages([question("twice", 40)]))
    assert len(list(grid.pull_messages(sent))) == 1
    assert list(grid.pull_messages(sent)) == []


def test_it_has_one_run():
    with pytest.raises(NotImplementedError, match="one run"):
        InProcessGrid(app, {40: 0}, {}).set_run(Run.create_empty(2))
