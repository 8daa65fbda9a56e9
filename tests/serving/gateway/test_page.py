from __future__ import annotations

import re

from serving.gateway.openapi import description
from serving.gateway.page import page
from serving.proto import sluice_pb2 as pb

PAGE = page(description(pb.DESCRIPTOR.services_by_name["Ranking"], "<1>"))


def test_the_page_shows_every_call_and_message() -> None:
    assert "POST /v1/rank" in PAGE
    assert "POST /v1/score" in PAGE
    assert all(f'id="{name}"' in PAGE for name in ("RankRequest", "RankedItem", "StageReport"))


def test_its_links_lead_somewhere_and_it_fetches_nothing() -> None:
    assert set(re.findall(r'href="#(\w+)"', PAGE)) <= set(re.findall(r'id="(\w+)"', PAGE))
    assert not re.search(r"<script|src=|https?://(?!HOST)", PAGE)


def test_what_it_is_told_is_escaped() -> None:
    assert "&lt;1&gt;" in PAGE
