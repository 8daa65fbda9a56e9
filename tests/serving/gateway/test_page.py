from __future__ import annotations

import re

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from serving.gateway.json_messages import to_message
from serving.gateway.openapi import description
from serving.gateway.page import EXAMPLES, page
from serving.proto import sluice_pb2 as pb

SERVICES = list(pb.DESCRIPTOR.services_by_name.values())
PAGE = page(description(SERVICES, "<1>"))


def test_the_page_shows_every_call_and_message() -> None:
    assert "POST /v1/rank" in PAGE
    assert "POST /v1/score" in PAGE
    assert "POST /v1/catalog/set-stock" in PAGE
    assert all(f'id="{name}"' in PAGE for name in ("RankRequest", "RankedItem", "StageReport"))


@pytest.mark.parametrize("method", [one for service in SERVICES for one in service.methods], ids=lambda one: one.name)
def test_its_examples_are_messages(method: MethodDescriptor) -> None:
    given = EXAMPLES[method.name]
    heard = to_message(given, GetMessageClass(method.input_type)())
    assert heard.ByteSize() or not given


def test_its_links_lead_somewhere_and_it_fetches_nothing() -> None:
    assert set(re.findall(r'href="#(\w+)"', PAGE)) <= set(re.findall(r'id="(\w+)"', PAGE))
    assert not re.search(r"<script|src=|https?://(?!HOST)", PAGE)


def test_what_it_is_told_is_escaped() -> None:
    assert "&lt;1&gt;" in PAGE
