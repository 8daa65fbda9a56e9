"""What the Ranking service makes of a request: an answer or a status that tells whose fault it is, and a row in the
log of either."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pkgutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pyarrow.dataset as ds
import pytest
import torch
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry
from torch import nn

from contracts.config.stages import Serve
from contracts.shown import short
from models.examples.batches import FeatureBlock
from serving.batches.large_requests import LARGE_BYTES
from serving.bundle.loaded_bundle import LoadedBundle
from serving.metrics.call_log import CallLog
from serving.metrics.request_observer import EndedCall, RequestObserver
from serving.metrics.serving_metrics import ServingMetrics
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.replay import response_history
from serving.request.deadline import Deadline
from serving.request.query import RankAnswer, RankQuery
from serving.response_log.response_log import ResponseLog
from serving.server import servicer as servicer_module
from serving.server.client import Placement, RankingClient
from serving.server.connection import RankingFailed
from serving.server.servicer import RankingServicer
from serving.server.translation import to_query
from serving.stages.funnel import Funnel
from serving.stages.request_run import RequestRun
from tests.serving.in_process_server import InProcessServer
from tests.serving.read_log import until

TRANSLATED = {"Rank": "to_query", "Score": "to_score_query", "WhyNot": "to_why_not"}
SERVE = Serve(default_limit=3, max_limit=10, deadline_ms=5000)


class Broken(Funnel):
    """A funnel with a defect that one user finds."""

    def begin(self, query: RankQuery, deadline: Deadline) -> RequestRun:
        if query.user == "trouble":
            raise ZeroDivisionError("a secret of the inside")
        return super().begin(query, deadline)


class Heard(CallLog):
    """Of every call, with the ids that it was told of."""

    def __init__(self) -> None:
        super().__init__(everything=True)
        self.ids = SimpleQueue[str]()

    def ended(self, method: str, status: str, seconds: float, request_id: str, trace_id: str) -> None:
        super().ended(method, status, seconds, request_id, trace_id)
        self.ids.put(request_id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def servicer(loaded: LoadedBundle, folder: Path) -> Iterator[RankingServicer]:
    log = ResponseLog(folder, flush_seconds=0.05, file_seconds=0.0)
    made = RankingServicer(Broken(loaded), loaded.manifest, SERVE, log)
    yield made
    made.close()
    log.close()


@pytest.fixture(scope="module")
def client(servicer: RankingServicer) -> Iterator[RankingClient]:
    with InProcessServer(servicer) as server, RankingClient(server.target) as client:
        yield client


def test_an_id_of_a_callers_writes_no_line_of_its_own_into_the_servers_log(
    client: RankingClient, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "mine\n2026-11-22 ERROR sluice: all is lost\x1b[31m" + "x" * 200
    with pytest.raises(RankingFailed, match="INTERNAL"):
        client.rank("trouble", request_id=forged, seconds=20)
    [record] = [one for one in caplog.records if "failed" in one.getMessage()]
    said = record.getMessage()
    assert "mine\\n2026" in said
    assert not {"\n", "\x1b"} & set(said)
    assert len(said) < 120


def test_ids_of_callers_are_printable_in_every_line(loaded: LoadedBundle, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sluice")
    heard = Heard()
    servicer = RankingServicer(Broken(loaded), loaded.manifest, SERVE, observer=RequestObserver(calls=heard))
    forged = "mine\n{}\x1b[31m\x7f" + "x" * 200
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        ranking = sluice_pb2_grpc.RankingStub(channel)
        with pytest.raises(grpc.RpcError, match="INTERNAL"):
            ranking.Rank(pb.RankRequest(user_id="trouble", request_id=forged), timeout=20)
        ranking.Rank(pb.RankRequest(user_id="u01", request_id=forged), timeout=20)
        ranking.Score(pb.ScoreRequest(user_id="u01", item_ids=["i01"], request_id=forged), timeout=20)
        ids = [heard.ids.get(timeout=20) for _ in range(3)]
    servicer.close()
    ids += [about["request_id"] for one in caplog.records if (about := getattr(one, "fields", {}))]
    assert len(ids) == 7  # three calls, each told and written, and what failed
    assert set(ids) == {short(forged)}
    assert short(forged).startswith("mine\\n{}\\x1b[31m\\x7f")


def test_a_request_is_answered_under_its_own_id_and_the_default_limit(
    client: RankingClient, servicer: RankingServicer, loaded: LoadedBundle
) -> None:
    before = servicer.taken
    answer = client.rank("u01", request_id="mine", seconds=20)
    assert (answer.request_id, answer.bundle_version, len(answer.items)) == ("mine", loaded.version, 3)
    assert servicer.taken == before + 1


def test_requests_without_an_id_get_ids_of_their_own(client: RankingClient) -> None:
    ids = {client.rank("u01", seconds=20).request_id for _ in range(3)}
    assert len(ids) == 3
    assert "" not in ids


@pytest.mark.parametrize(("size", "beside"), [(10, False), (LARGE_BYTES, True)])
def test_a_large_request_is_read_beside_the_event_loop(
    client: RankingClient, monkeypatch: pytest.MonkeyPatch, size: int, beside: bool
) -> None:
    """In which it would hold up everybody for as long as it takes."""
    threads: list[bool] = []

    def looked_at(request: pb.RankRequest, serve: Serve) -> RankQuery:
        is_beside = True
        with contextlib.suppress(RuntimeError):  # where no event loop runs
            is_beside = asyncio.get_running_loop() is None
        threads.append(is_beside)
        return to_query(request, serve)

    monkeypatch.setattr("serving.server.servicer.to_query", looked_at)
    names = [f"{'x' * 500} {n}" for n in range(-(-size // 500))]
    assert client.rank("u01", candidates=["i01", *names][:50], recent_items=names, seconds=20).items
    assert threads == [beside]


@pytest.mark.parametrize("method", ["Rank", "Score", "WhyNot"])
def test_the_time_of_a_large_request_runs_while_it_waits_to_be_read(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    may_go, own = threading.Event(), f"serving.server.servicer.{TRANSLATED[method]}"
    translate = pkgutil.resolve_name(own)

    def held(request: Any, serve: Serve) -> Any:
        may_go.wait(20)
        return translate(request, serve)

    monkeypatch.setattr(own, held)
    serve = SERVE.model_copy(update={"deadline_ms": 50})
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, serve)
    large = pb.RecentItems(item_ids=["x" * 500] * (LARGE_BYTES // 500 + 1))
    asked = {"Rank": pb.RankRequest(user_id="u01", recent_items=large),
             "Score": pb.ScoreRequest(user_id="u01", item_ids=["i01"], recent_items=large),
             "WhyNot": pb.WhyNotRequest(request=pb.RankRequest(user_id="u01", recent_items=large), item_ids=["i01"])}
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        calls = [getattr(sluice_pb2_grpc.RankingStub(channel), method).future(asked[method]) for _ in range(2)]
        while servicer.reading < 2:
            time.sleep(0.001)
        late = Deadline(serve.deadline_ms / 1000)
        while not late.expired:
            time.sleep(0.001)
        may_go.set()
        said = [one.exception(20) for one in calls]
    servicer.close()
    assert [one.code() for one in said] == [grpc.StatusCode.DEADLINE_EXCEEDED] * 2


class Forgetful(ServingMetrics):
    """Metrics with a defect."""

    def ended(self, *call: Any) -> None:
        raise ZeroDivisionError("metrics")


def test_an_observer_that_raises_costs_its_own_figures_alone(
    loaded: LoadedBundle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """More large requests than one caller's that wait: each gives its bytes back, and has its row and its line."""
    heard, answers = Heard(), ResponseLog(tmp_path, flush_seconds=0.01)
    observer = RequestObserver(Forgetful(CollectorRegistry()), calls=heard)
    serve = SERVE.model_copy(update={"max_request_kb": 80})
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, serve, answers, observer=observer)
    large = pb.RecentItems(item_ids=["x" * 500] * 140)
    with InProcessServer(servicer) as server, grpc.insecure_channel(server.target) as channel:
        ranking = sluice_pb2_grpc.RankingStub(channel)
        for n in range(9):
            asked = pb.RankRequest(user_id="u01", request_id=f"r{n}", recent_items=large)
            assert ranking.Rank(asked, timeout=20).items
            assert heard.ids.get(timeout=20) == f"r{n}"
        assert ranking.Score(pb.ScoreRequest(user_id="u01", item_ids=["i01"]), timeout=20).probabilities
    servicer.close()
    answers.close()
    table = ds.dataset(tmp_path, format="parquet").to_table()
    assert sorted(table["request_id"].to_pylist()) == [f"r{n}" for n in range(9)]
    assert [one.getMessage() for one in caplog.records if "metrics of a call" in one.getMessage()] == [
        "metrics of a call could not be kept; others of these are not told of"]


def test_the_callers_fault_names_the_field(client: RankingClient) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("u01", limit=0, seconds=20)
    assert (caught.value.code, list(caught.value.fields)) == ("INVALID_ARGUMENT", ["limit"])


def test_the_servers_fault_is_told_without_its_inside(client: RankingClient) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("trouble", seconds=20)
    assert caught.value.code == "INTERNAL"
    assert "secret" not in str(caught.value)


def test_without_a_deadline_of_the_callers_the_servers_own_holds(loaded: LoadedBundle) -> None:
    hasty = RankingServicer(Funnel(loaded), loaded.manifest, SERVE.model_copy(update={"deadline_ms": 0}))
    with InProcessServer(hasty) as server, grpc.insecure_channel(server.target) as channel:
        rank = sluice_pb2_grpc.RankingStub(channel).Rank
        with pytest.raises(grpc.RpcError, match="had passed before the first stage"):
            rank(pb.RankRequest(user_id="u01"))
        assert rank(pb.RankRequest(user_id="u01"), timeout=20).items
    hasty.close()


def test_items_are_scored_over_the_wire(client: RankingClient) -> None:
    found = client.score("u01", ["i01", "what", "i02"], context={"device": "phone"}, seconds=20)
    assert list(found.unknown_items) == ["what"]
    assert [0 < one < 1 for one in found.probabilities] == [True, False, True]
    with pytest.raises(RankingFailed) as caught:
        client.score("u01", [], seconds=20)
    assert (caught.value.code, list(caught.value.fields)) == ("INVALID_ARGUMENT", ["item_ids"])


def test_several_slates_in_one_call(client: RankingClient, folder: Path) -> None:
    """And each is a row of the log, under the placement's name."""
    answer = client.rank("u01", request_id="page", context={"hour": 9.0}, seconds=20, placements=[
        Placement("top", limit=2, filters={"category": ["books"]}),
        Placement("side", filters={"category": ["music"]}, context={"device": "desk"}),
        Placement("own", candidates=["i01", "i05", "what"])])  # of neither category
    assert [(slate.name, len(slate.items), slate.degraded) for slate in answer.placements] == [
        ("top", 2, False), ("side", 3, False), ("own", 2, False)]
    shown = [item.item_id for slate in answer.placements for item in slate.items]
    assert len(set(shown)) == 7
    assert list(answer.placements[2].unknown_candidates) == ["what"]
    assert (answer.request_id, list(answer.items), answer.degraded) == ("page", [], False)
    rows: dict[str, dict[str, Any]] = {}
    while len(rows) < 3:
        found = ds.dataset(folder, format="parquet").to_table().to_pylist()
        rows = {row["request_id"]: row for row in found if row["request_id"].startswith("page/")}
    for slate in answer.placements:
        row = rows[f"page/{slate.name}"]
        assert row["items"] == [item.item_id for item in slate.items]
        assert row["positions"] == list(range(1, len(slate.items) + 1))
    assert dict(rows["page/side"]["context"]) == {"hour": "9.0", "device": "desk"}


@pytest.mark.parametrize(("asked", "field"), [
    ({"placements": [Placement("a"), Placement("b", limit=99)]}, "placements[1].limit"),
    ({"placements": [Placement("a", candidates=[])]}, "placements[0].candidates"),
    ({"placements": [Placement("a")], "limit": 2}, "limit"),
    ({"candidates": []}, "candidates"),
    ({"candidates": ["new"], "features": {"new": {"category": "music"}}}, "features[new].bid"),
])
def test_what_cannot_be_answered_as_asked_is_named(client: RankingClient, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("u01", seconds=20, **asked)
    assert (caught.value.code, list(caught.value.fields)) == ("INVALID_ARGUMENT", [field])


def test_a_candidate_of_the_callers_own_is_ranked(client: RankingClient) -> None:
    answer = client.rank("u01", candidates=["i01", "new", "what"], features={"new": {"category": "music"}},
                         bids={"new": 2.5}, seconds=20)
    assert {item.item_id for item in answer.items} == {"i01", "new"}
    assert list(answer.unknown_candidates) == ["what"]
    assert all(item.HasField("price") for item in answer.items)


def test_while_refusing_nothing_is_begun(client: RankingClient, servicer: RankingServicer) -> None:
    servicer.refusing = True
    try:
        with pytest.raises(RankingFailed) as caught:
            client.rank("u01", seconds=20)
    finally:
        servicer.refusing = False
    assert caught.value.code == "UNAVAILABLE"
    assert client.rank("u01", seconds=20).items


def test_every_outcome_is_logged(client: RankingClient, servicer: RankingServicer, folder: Path) -> None:
    wanted = {"fine": "OK", "bad": "INVALID_ARGUMENT", "broken": "INTERNAL"}
    client.rank("u01", limit=2, request_id="fine", seconds=20)
    for user, limit, name in (("u01", 0, "bad"), ("trouble", 1, "broken")):
        with pytest.raises(RankingFailed):
            client.rank(user, limit=limit, request_id=name, seconds=20)
    rows: dict[str, str] = {}
    while not wanted.keys() <= rows.keys():
        found = ds.dataset(folder, format="parquet").to_table().to_pylist()
        rows = {row["request_id"]: row["status"] for row in found}
    assert {name: rows[name] for name in wanted} == wanted


SLOW = 0.5
DEADLINES = (0.1, 0.2, 0.4)


class SlowRanker(nn.Module):
    """The bundle's ranker, later by half a second."""

    def __init__(self, ranker: nn.Module) -> None:
        super().__init__()
        self.ranker = ranker

    def forward(self, *blocks: FeatureBlock) -> torch.Tensor:
        time.sleep(SLOW)
        return self.ranker(*blocks)


def test_a_slow_ranker_costs_the_ranking_and_no_answer(loaded: LoadedBundle) -> None:
    """Over a real channel, at deadlines far above the floor and below what ranking takes."""
    made = RankingServicer(Funnel(replace(loaded, ranker=SlowRanker(loaded.ranker))), loaded.manifest, SERVE)
    in_time: list[bool] = []
    with InProcessServer(made) as server, RankingClient(server.target) as client:
        client.wait_ready(20)
        client.rank("u01", seconds=5)
        for number in range(90):
            try:
                answer = client.rank(f"u{number % 60:02d}", seconds=DEADLINES[number % len(DEADLINES)])
            except RankingFailed:
                in_time.append(False)
                continue
            ranked = next(stage for stage in answer.stages if stage.name == "rank")
            assert answer.degraded
            assert ranked.fallback == pb.StageReport.PREVIOUS_ORDER
            assert answer.items
            in_time.append(True)
    made.close()
    assert sum(in_time) >= 0.95 * len(in_time)  # a busy machine wakes up late


class FailingRanker(nn.Module):
    """The bundle's ranker, which raises every third time; `failures` counts those."""

    def __init__(self, ranker: nn.Module) -> None:
        super().__init__()
        self.ranker, self.calls, self.failures = ranker, 0, 0

    def forward(self, *blocks: FeatureBlock) -> torch.Tensor:
        self.calls += 1
        if self.calls % 3 == 0:
            self.failures += 1
            raise ZeroDivisionError("a defect")
        return self.ranker(*blocks)


def test_a_ranker_that_raises_costs_the_ranking_and_no_answer(loaded: LoadedBundle) -> None:
    """Under the load of four callers: none fails, and as many are degraded as the ranker has failed."""
    ranker = FailingRanker(loaded.ranker)
    made = RankingServicer(Funnel(replace(loaded, ranker=ranker)), loaded.manifest, SERVE)

    def caller(number: int) -> list[pb.RankResponse]:
        with RankingClient(server.target) as client:
            return [client.rank(f"u{number + turn:02d}", seconds=20) for turn in range(15)]

    with InProcessServer(made) as server, ThreadPoolExecutor(4) as callers:
        answers = [answer for found in callers.map(caller, range(4)) for answer in found]
        ranker.calls = 2
        with RankingClient(server.target) as client, pytest.raises(RankingFailed, match="INTERNAL"):
            client.rank("u01", partial_ok=False, seconds=20)
    made.close()
    assert all(answer.items for answer in answers)
    degraded = [answer for answer in answers if answer.degraded]
    assert (len(answers), len(degraded)) == (60, 20)
    reports = [stage for answer in degraded for stage in answer.stages if stage.name == "rank"]
    assert {(stage.fallback, stage.cause) for stage in reports} == {
        (pb.StageReport.PREVIOUS_ORDER, "it failed: ZeroDivisionError")}


def test_all_stages_in_time_or_an_error(loaded: LoadedBundle) -> None:
    made = RankingServicer(Funnel(replace(loaded, ranker=SlowRanker(loaded.ranker))), loaded.manifest, SERVE)
    with InProcessServer(made) as server, RankingClient(server.target) as client:
        for _ in range(3):
            with pytest.raises(RankingFailed, match="DEADLINE_EXCEEDED"):
                client.rank("u01", partial_ok=False, seconds=SLOW / 2)
        assert not client.rank("u01", partial_ok=False, seconds=20).degraded
    made.close()


def test_a_flood_of_one_tenant_does_not_starve_another(loaded: LoadedBundle) -> None:
    made = RankingServicer(Funnel(replace(loaded, ranker=SlowRanker(loaded.ranker))), loaded.manifest,
                           SERVE.model_copy(update={"max_queue": 4, "queue_ms": 9000}))
    with InProcessServer(made) as server, grpc.insecure_channel(server.target) as channel:
        rank = sluice_pb2_grpc.RankingStub(channel).Rank
        flood = [rank.future(pb.RankRequest(user_id="u01"), timeout=4, metadata=(("sluice-tenant", "flood"),))
                 for _ in range(20)]
        answer = rank(pb.RankRequest(user_id="u02"), timeout=4, metadata=(("sluice-tenant", "quiet"),))
        codes = [one.code() for one in flood]
    made.close()
    assert answer.items
    assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) >= 12
    assert codes.count(grpc.StatusCode.OK) >= 3


def test_a_deadline_beyond_the_limit_counts_as_the_limit(loaded: LoadedBundle) -> None:
    made = RankingServicer(Funnel(replace(loaded, ranker=SlowRanker(loaded.ranker))), loaded.manifest,
                           SERVE.model_copy(update={"max_deadline_ms": 200}))
    with InProcessServer(made) as server, RankingClient(server.target) as client:
        assert all(client.rank("u01", seconds=20).degraded for _ in range(3))
    made.close()


class LateAnswer(RequestRun):
    """A run whose last step takes longer than its caller waits, on the event loop: the answer is whole and too late."""

    def complete(self, trace: object = None) -> RankAnswer:
        time.sleep(2 * DEADLINES[0])
        return super().complete(None)

    def salvage(self) -> RankAnswer:
        time.sleep(2 * DEADLINES[0])
        return super().salvage()


class Late(Funnel):
    def run(self, query: RankQuery, deadline: Deadline) -> RequestRun:
        return LateAnswer(self._stages, query, deadline)


def test_a_server_that_is_always_too_late_has_failed_every_call(loaded: LoadedBundle, tmp_path: Path) -> None:
    """Each caller sees DEADLINE_EXCEEDED, and so does the log: no item counts as shown, and the error rate is 1."""
    log = ResponseLog(tmp_path)
    made = RankingServicer(Late(loaded), loaded.manifest, SERVE, log)
    with InProcessServer(made) as server, RankingClient(server.target) as client:
        client.wait_ready(20)
        while made.taken < 5:  # a machine that is busy may not even hear a call in time
            with pytest.raises(RankingFailed) as caught:
                client.rank("u01", seconds=DEADLINES[0])
            assert caught.value.code == "DEADLINE_EXCEEDED"
            until(lambda: made.engine.free)  # else the next may be refused
            time.sleep(2 * DEADLINES[0])
    made.close()
    log.close()
    found = response_history.read(tmp_path, datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC))
    logged = len(found.failed)  # the last may have gone before the server had begun with it
    assert 4 <= logged <= 5
    assert found.failed.all()
    assert found.failures == {"DEADLINE_EXCEEDED": logged}
    assert found.table["items"].to_pylist() == [[]] * logged


class Statuses(RequestObserver):
    def __init__(self) -> None:
        super().__init__()
        self.ended_with = SimpleQueue[str]()

    def ended(self, call: EndedCall) -> None:
        self.ended_with.put(call.status)


@pytest.mark.parametrize(("method", "asked"), [
    ("Score", pb.ScoreRequest(user_id="u01", item_ids=["i01"])),
    ("WhyNot", pb.WhyNotRequest(request=pb.RankRequest(user_id="u01"), item_ids=["i01"]))])
def test_an_answer_that_leaves_too_late_is_not_counted_as_ok(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, method: str, asked: Message
) -> None:
    """Though it was computed in time."""
    write = "to_score_response" if method == "Score" else "to_why_not_response"
    written, heard = getattr(servicer_module, write), Statuses()

    def slow(*arguments: Any) -> Message:
        time.sleep(6)
        return written(*arguments)

    made = RankingServicer(Funnel(loaded), loaded.manifest, SERVE, observer=heard)
    with InProcessServer(made) as server, grpc.insecure_channel(server.target) as channel:
        call = getattr(sluice_pb2_grpc.RankingStub(channel), method)
        call(asked, timeout=20, wait_for_ready=True)
        assert heard.ended_with.get(timeout=20) == "OK"
        monkeypatch.setattr(servicer_module, write, slow)
        with pytest.raises(grpc.RpcError) as caught:
            call(asked, timeout=5)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert heard.ended_with.get(timeout=20) == "DEADLINE_EXCEEDED"
    made.close()


def test_a_caller_that_hangs_up_early_is_no_failure_of_the_server(loaded: LoadedBundle, tmp_path: Path) -> None:
    log = ResponseLog(tmp_path, flush_seconds=60.0)  # until it is closed, so that its row is seen to wait
    made = RankingServicer(Late(loaded), loaded.manifest, SERVE, log)
    with InProcessServer(made) as server, grpc.insecure_channel(server.target) as channel:
        grpc.channel_ready_future(channel).result(20)
        while not log.state.waiting:  # one that ends before its request is read is counted alone
            before = made.taken
            call = sluice_pb2_grpc.RankingStub(channel).Rank.future(pb.RankRequest(user_id="u01"), timeout=20)
            while made.taken == before:
                time.sleep(0.01)
            call.cancel()
            for _ in range(200):
                if not log.state.waiting:
                    time.sleep(0.01)
    made.close()
    log.close()
    assert set(response_history.rows(tmp_path)["status"].to_pylist()) == {"CANCELLED"}
