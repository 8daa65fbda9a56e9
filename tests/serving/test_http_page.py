"""The curl lines of the README and of docs/reference/http.md, asked of a real gateway before a real server."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.gateway.app import Upstream
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.gateway.running_gateway import RunningGateway
from tests.serving.in_process_server import InProcessServer

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "reference" / "http.md"]
LINES = [line for page in PAGES for line in re.findall(r"^\s*(curl .*\S)\s*$", page.read_text("utf-8"), re.M)]


@pytest.fixture(scope="module")
def gateway(loaded: LoadedBundle) -> Iterator[RunningGateway]:
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    with InProcessServer(servicer) as server, RunningGateway(Upstream(server.target)) as running:
        yield running
    servicer.close()


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_answered(line: str, gateway: RunningGateway) -> None:
    words = shlex.split(line)
    given = dict(pairwise(words))
    header = dict([given["-H"].split(": ", 1)]) if "-H" in given else {}
    path = urlsplit(next(word for word in words if word.startswith("http"))).path
    heard = gateway.post(path, given["-d"].encode(), **{**header, "Grpc-Timeout": "20S"})
    assert heard.status == 200, heard.body
    assert heard.body["probabilities" if path == "/v1/score" else "items"]


def test_every_call_is_shown_and_bodies_are_json() -> None:
    assert {urlsplit(word).path for line in LINES for word in shlex.split(line) if word.startswith("http")} == {
        "/v1/rank", "/v1/score", "/v1/why-not"}
    assert all(json.loads(shlex.split(line)[-1]) for line in LINES)
