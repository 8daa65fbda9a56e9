"""Parts of a reply that a SuperLink would hand on: heads and hashes are right, what they hold is not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_id
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectUnavailableError,
    validate_object_content,
)
from flwr.superlink.grid import http_grid

from federated.flower import array_records, reply_guard
from federated.flower.array_records import from_records, to_records
from federated.flower.in_process_grid import InProcessGrid
from federated.flower.reply_guard import guard, put_together


@pytest.fixture(autouse=True)
def _in_a_run():
    InProcessGrid(ClientApp(), {}, {})


@pytest.fixture(autouse=True)
def _in_parts(monkeypatch):
    """Small messages go in Flower's parts here, as large ones do."""
    monkeypatch.setattr(array_records, "SMALL", 0)


def parts(values=(0.0, 1.0, 2.0)):
    """The id of a reply, and its parts by id."""
    asked = Message(to_records({"a": np.zeros(1)}), 7, "query.keys", group_id="1 ab")
    reply = Message(to_records({"a": np.array(values)}), reply_to=asked)
    return reply.object_id, {name: part.deflate() for name, part in get_all_nested_objects(reply).items()}


def headed(kind, children, body):
    return f"{kind} {','.join(children)} {len(body)}".encode() + b"\x00" + body


def kind_of(content):
    return content.split(b" ")[0].decode()


def children_of(content):
    return content.split(b"\x00")[0].decode().split(" ")[1].split(",")


def repeated(kind, change):
    """A reply of 240 kB, the body of one part of which is another, with all ids that hang on it."""
    name, whole = parts(np.arange(30_000.0))
    old = next(each for each, content in whole.items() if kind_of(content) == kind)
    given = json.loads(whole[old].split(b"\x00", 1)[1])
    whole[old] = headed(kind, children_of(whole[old]), json.dumps(change(given)).encode())
    while old != name:
        content = whole.pop(old)
        made = get_object_id(content)
        whole = {each: other.replace(old.encode(), made.encode()) for each, other in whole.items()} | {made: content}
        old = next(each for each, other in whole.items() if get_object_id(other) != each)
    content = whole.pop(name)
    return get_object_id(content), {**whole, get_object_id(content): content}


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
        "a part named thousands of times": repeated("Array", lambda given: {
            **given, "arraychunk_ids": given["arraychunk_ids"] * 2000}),
        "an array of many names": repeated("ArrayRecord", lambda given: {
            f"{number}": each for number in range(1000) for each in given.values()}),
    }


@pytest.mark.parametrize("small", [0, 1000])
def test_a_reply_is_put_together_as_it_was_sent(monkeypatch, small):
    monkeypatch.setattr(array_records, "SMALL", small)
    name, whole = parts()
    reply = put_together(name, whole)
    assert from_records(reply.content)["a"].tolist() == [0.0, 1.0, 2.0]
    assert reply.metadata.group_id == "1 ab"


@pytest.mark.parametrize("attack", [
    "another kind", "a part is missing", "no children", "an array in place of the records",
    "itself a child", "a body that does not decode", "a part named thousands of times", "an array of many names"])
def test_what_cannot_be_put_together_is_an_error_of_nobody(attack):
    name, whole = attacks()[attack]
    for content in whole.values():
        validate_object_content(content)  # a SuperLink takes it
    reply = put_together(name, whole)
    assert reply.has_error()
    assert reply.metadata.group_id == ""


@pytest.fixture
def guarded(monkeypatch):
    for name in ("inflate_object_from_contents", "pull_objects"):
        monkeypatch.setattr(http_grid, name, getattr(http_grid, name))
    monkeypatch.setattr(reply_guard, "PULL_SECONDS", 0.1)
    guard()


def test_flowers_grid_puts_replies_together_by_this(guarded):
    assert http_grid.inflate_object_from_contents is put_together


def test_parts_that_do_not_come_are_not_waited_for(guarded):
    def absent(name):
        raise ObjectUnavailableError(name)

    with pytest.raises(ObjectPullError, match="timeout"):
        http_grid.pull_objects(["a"], absent)
