"""The curl lines of the README and of docs/reference/http.md, asked of a real gateway before `sluice serve --fresh`."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from serving.gateway.app import SERVICES, Upstream
from serving.gateway.openapi import path_of
from sluice.demo.server_process import ServerProcess
from tests.serving.gateway.running_gateway import Heard, RunningGateway
from tests.serving.recorded_events import recordable

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "reference" / "http.md"]
LINES = [line for page in PAGES for line in re.findall(r"^\s*(curl .*\S)\s*$", page.read_text("utf-8"), re.M)]
TIMEOUT = {"Grpc-Timeout": "20S"}


@pytest.fixture(scope="module")
def gateway(bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """Before a server whose bundle can record events."""
    folder = tmp_path_factory.mktemp("http")
    server = ServerProcess(recordable(bundle_folder, folder), folder / "server.log",
                           options=("--fresh", str(folder / "fresh"), "--workers", "1"))
    with RunningGateway(Upstream(server.target)) as running:
        yield running
    assert server.stop() == 0


def asked(line: str) -> str:
    """The path of a line."""
    return urlsplit(next(word for word in shlex.split(line) if word.startswith("http"))).path


def send(line: str, gateway: RunningGateway) -> Heard:
    given = dict(pairwise(shlex.split(line)))
    header = dict([given["-H"].split(": ", 1)]) if "-H" in given else {}
    return gateway.post(asked(line), given["-d"].encode(), **{**header, **TIMEOUT})


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_answered(line: str, gateway: RunningGateway) -> None:
    heard = send(line, gateway)
    assert heard.status == 200, heard.body
    said = {"/v1/score": "probabilities", "/v1/events": "recorded", "/v1/catalog/status": "bundle_version"}
    kind = "results" if "/catalog/" in asked(line) else "items"
    assert heard.body[said.get(asked(line), kind)]
    assert {one["outcome"] for one in heard.body.get("results", [])} <= {"APPLIED"}
    assert not heard.body.get("errors")


def test_every_call_is_shown_and_bodies_are_json() -> None:
    assert {asked(line) for line in LINES} == {path_of(one) for service in SERVICES for one in service.methods}
    assert all(isinstance(json.loads(shlex.split(line)[-1]), dict) for line in LINES)


def test_what_is_wrong_with_one_of_a_batch_is_said_and_the_rest_is_kept(gateway: RunningGateway) -> None:
    good = {"event_id": "b1", "kind": "IMPRESSION", "user_id": "u", "item_id": "i01", "request_id": "b",
            "position": 1, "bid": 1.0}
    heard = gateway.post("/v1/events", {"events": [{**good, "event_id": ""}, good]}, **TIMEOUT).body
    assert (heard["recorded"], heard["errors"][0]["index"], heard["errors"][0]["field"]) == (1, 0, "event_id")
    assert gateway.post("/v1/events", {"events": [good]}, **TIMEOUT).body["repeats"] == 1
    told = gateway.post("/v1/catalog/set-bids", [{"change": {"item_id": "i01", "version": 9}, "bid": 0.5},
                                                 {"change": {"item_id": "", "version": 9}, "bid": 0.5}], **TIMEOUT).body
    assert [one["outcome"] for one in told["results"]] == ["APPLIED", "REFUSED"]
    assert isinstance(told["sequence"], int)


def test_a_withdrawn_item_is_shown_no_more(gateway: RunningGateway) -> None:
    def items() -> list[str]:
        answer = gateway.post("/v1/rank", {"user_id": "u01", "limit": 10}, **TIMEOUT).body
        return [one["item_id"] for one in answer["items"]]

    first = items()[0]
    told = gateway.post("/v1/catalog/withdraw", {"items": [{"item_id": first, "version": 100}]}, **TIMEOUT).body
    end = time.monotonic() + 60
    while gateway.post("/v1/catalog/status", {}, **TIMEOUT).body["applied_sequence"] < told["sequence"]:
        assert time.monotonic() < end
    assert first not in items()
