"""Parts of a reply that a SuperLink would hand on: heads and hashes are right, what they hold is not."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_id
from flwr.supercore.inflatable.inflatable_utils import validate_object_content
from flwr.superlink.grid import http_grid

from federated.flower.array_records import from_records, to_records
from federated.flower.in_process_grid import InProcessGrid
from federated.flower.reply_guard import guard, put_together


@pytest.fixture(autouse=True)
def _in_a_run():
    InProcessGrid(ClientApp(), {}, {})


def parts():
    """The id of a reply, and its parts by id."""
    asked = Message(to_records({"a": np.zeros(1)}), 7, "query.keys", group_id="1 ab")
    reply = Message(to_records({"a": np.arange(3.0)}), reply_to=asked)
    return reply.object_id, {name: part.deflate() for name, part in get_all_nested_objects(reply).items()}


def headed(kind, children, body):
    return f"{kind} {','.join(children)} {len(body)}".encode() + b"\x00" + body


def kind_of(content):
    return content.split(b" ")[0].decode()


def children_of(content):
    return content.split(b"\x00")[0].decode().split(" ")[1].split(",")


def attacks():
    """Name -> (id, parts) that Flower does not put together, or puts together as what is no reply."""
    name, whole = parts()
    of_kind = {kind_of(content): each for each, content in whole.items()}
    message, body = whole[name], whole[name].split(b"\x00", 1)[1]
    records = children_of(message)[0]

    def replaced(content):
        return get_object_id(content), {**whole, get_object_id(content): content}

    return {
        "another kind": (of_kind["ArrayRecord"], dict(whole)),
        "a part is missing": (name, {name: message}),
        "no children": replaced(headed("Message", [], body)),
        "an array in place of the records": replaced(headed("Message", [of_kind["Array"]], body)),
        "itself a child": replaced(headed("Message", [name], body)),
        "a body that does not decode": replaced(headed("Message", [records], b"\xff" * 40)),
    }


def test_a_reply_is_put_together_as_it_was_sent():
    name, whole = parts()
    reply = put_together(name, whole)
    assert from_records(reply.content)["a"].tolist() == [0.0, 1.0, 2.0]
    assert reply.metadata.group_id == "1 ab"


@pytest.mark.parametrize("attack", [
    "another kind", "a part is missing", "no children", "an array in place of the records",
    "itself a child", "a body that does not decode"])
def test_what_cannot_be_put_together_is_an_error_of_nobody(attack):
    name, whole = attacks()[attack]
    for content in whole.values():
        validate_object_content(content)  # a SuperLink takes it
    reply = put_together(name, whole)
    assert reply.has_error()
    assert reply.metadata.group_id == ""


def test_flowers_grid_puts_replies_together_by_this(monkeypatch):
    monkeypatch.setattr(http_grid, "inflate_object_from_contents", http_grid.inflate_object_from_contents)
    guard()
    assert http_grid.inflate_object_from_contents is put_together
