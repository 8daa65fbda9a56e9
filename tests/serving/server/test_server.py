"""A real server process, asked over gRPC as a caller would."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from contracts.bundle.bundle import read_manifest
from contracts.errors import SluiceError
from serving.access.doors import Doors
from serving.access.tls import TlsFiles
from serving.native.native_library import library
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.replay import response_history
from serving.server.bundle_health import RESPONSE_LOG_SERVICE
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from serving.server.server import ServerSettings, needs_newer
from serving.start.warm_up import collect_in_pieces
from sluice.demo.server_process import ServerProcess
from tests.serving.silent_caller import SilentCaller

SLOW_MS, BUSY = 100, 30  # 3 s of work: the port closes within 2 s of the signal, what runs has 5 s more
CALLERS, MANY, HELD = 4, 1000, 300
PATIENT = {"queue_ms": 60_000, "max_deadline_ms": 60_000}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def server(bundle_folder, answers, tmp_path_factory):
    log = tmp_path_factory.mktemp("server") / "server.log"
    process = ServerProcess(bundle_folder, log, options=("--log-answers", str(answers), "--workers", "1"))
    yield process
    assert process.stop() == 0


@pytest.fixture(scope="module")
def patient(publish_bundle, tmp_path_factory):
    """A server that refuses nothing for what this machine takes."""
    folder = publish_bundle(serve=PATIENT)
    process = ServerProcess(folder, tmp_path_factory.mktemp("patient") / "server.log", options=("--workers", "1"))
    yield process
    assert process.stop() == 0


@pytest.fixture
def patient_client(patient):
    with RankingClient(patient.target) as client:
        yield client


@pytest.fixture
def client(server):
    with RankingClient(server.target) as client:
        yield client


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.target) as channel:
        yield channel


def test_cyclic_garbage_is_collected_in_pieces():
    before, pieces = gc.get_threshold(), []

    def ended(phase, info):
        if phase == "stop":
            pieces.append(info["collected"])

    collect_in_pieces()
    gc.callbacks.append(ended)
    try:
        for _ in range(100_000):
            cycle: list[object] = []
            cycle.append(cycle)
        assert sum(pieces) > 80_000
        assert max(pieces) < 20_000
    finally:
        gc.callbacks.remove(ended)
        gc.set_threshold(*before)
        gc.unfreeze()


@pytest.mark.slow
def test_garbage_that_was_kept_for_long_is_collected_in_pieces():
    """However much was loaded: cycles that outlive the young collections wait for no fourth of that."""
    before, pieces = gc.get_threshold(), []
    loaded: list[list[object]] = [[] for _ in range(300_000)]
    kept: deque[list[object]] = deque(maxlen=5000)

    def ended(phase, info):
        if phase == "stop" and info["generation"] == 2:
            pieces.append(info["collected"])

    collect_in_pieces()
    gc.callbacks.append(ended)
    try:
        for _ in range(60_000):
            cycle: list[object] = []
            cycle.append(cycle)
            kept.append(cycle)
        assert len(loaded) == 300_000
        assert pieces
        assert max(pieces) < 30_000
    finally:
        gc.callbacks.remove(ended)
        gc.set_threshold(*before)
        gc.unfreeze()


def a_user(loaded) -> str:
    return loaded.users.key(0)


def test_an_answer_has_items_reasons_stages_and_the_version(client, loaded, bundle_folder):
    answer = client.rank(a_user(loaded), limit=5, reasons=True, seconds=5)
    assert answer.bundle_version == read_manifest(bundle_folder).version
    assert answer.known_user
    assert answer.request_id
    assert 0 < len(answer.items) <= 5
    assert [stage.name for stage in answer.stages] == ["retrieve", "prerank", "rank", "rerank", "explain"]
    assert all(stage.status == pb.StageReport.COMPLETE for stage in answer.stages)
    for item in answer.items:
        assert 0.0 < item.probability < 1.0
        assert item.channel
        assert len(item.reasons) == 3


def test_reasons_are_off_unless_asked_for(client, loaded):
    answer = client.rank(a_user(loaded), seconds=5)
    assert not answer.degraded
    assert [list(item.reasons) for item in answer.items] == [[]] * len(answer.items)
    assert "explain" not in [stage.name for stage in answer.stages if stage.status == pb.StageReport.COMPLETE]


def test_the_wire_changes_nothing_of_the_funnels_answer(client, loaded):
    from serving.request.deadline import Deadline
    from serving.request.query import RankQuery
    from serving.stages.funnel import Funnel

    own = Funnel(loaded).rank(RankQuery(user=a_user(loaded), limit=4), Deadline(None))
    wire = client.rank(a_user(loaded), limit=4, seconds=5)
    assert [item.item_id for item in wire.items] == [item.item for item in own.items]
    assert [item.probability for item in wire.items] == pytest.approx(
        [item.probability for item in own.items], abs=1e-6
    )


def test_an_unknown_user_is_answered_and_said_to_be_unknown(client):
    answer = client.rank("nobody-ever", seconds=5)
    assert answer.items
    assert not answer.known_user


def test_an_unknown_explicit_candidate_is_dropped_and_reported(client, loaded):
    known = [loaded.items.key(row) for row in range(3)]
    answer = client.rank(a_user(loaded), candidates=[*known, "no-such-item"], seconds=5)
    assert list(answer.unknown_candidates) == ["no-such-item"]
    assert {item.item_id for item in answer.items} <= set(known)


@pytest.mark.parametrize(
    ("request_", "field", "part"),
    [
        ({"limit": 0}, "limit", "0"),
        ({"limit": 100_000}, "limit", "100000"),
        ({"context": {"no_such_field": "x"}}, "context", "no_such_field"),
        ({"filters": {"no_such_column": ["x"]}}, "filters", "no_such_column"),
    ],
)
def test_a_malformed_request_is_an_invalid_argument_with_the_field_and_the_value(client, loaded, request_, field, part):
    with pytest.raises(RankingFailed) as caught:
        client.rank(a_user(loaded), seconds=5, **request_)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert part in str(caught.value)
    assert [name.startswith(field) for name in caught.value.fields] == [True]


def test_an_empty_user_and_an_empty_context_value_are_refused(client, channel):
    with pytest.raises(RankingFailed, match="user_id"):
        client.rank("", seconds=5)
    rank = channel.unary_unary(
        "/sluice.v1.Ranking/Rank",
        request_serializer=pb.RankRequest.SerializeToString,
        response_deserializer=pb.RankResponse.FromString,
    )
    with pytest.raises(grpc.RpcError, match="holds no value"):
        rank(pb.RankRequest(user_id="u", context={"device": pb.Value()}), timeout=5)


def test_a_deadline_nobody_can_meet_is_exceeded_and_the_server_lives_on(client, loaded):
    with pytest.raises(RankingFailed) as caught:
        client.rank(a_user(loaded), seconds=1e-6)
    assert caught.value.code == "DEADLINE_EXCEEDED"
    assert client.rank(a_user(loaded), seconds=5).items


def logged(answers, request_id) -> dict:
    """The row that the server logs for a request, waited for."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        rows = response_history.rows(answers).to_pylist()
        found = [row for row in rows if row["request_id"] == request_id]
        if found:
            return found[0]
        time.sleep(0.05)
    pytest.fail(f"{request_id} is not in the response log")


def test_an_answer_is_logged_as_it_was_given(client, loaded, answers):
    answer = client.rank(a_user(loaded), context={"device": "phone"}, limit=4, request_id="log-me", seconds=5)
    row = logged(answers, "log-me")
    assert row["items"] == [item.item_id for item in answer.items]
    assert row["scores"] == [item.score for item in answer.items]
    assert row["probabilities"] == [item.probability for item in answer.items]
    assert row["positions"] == list(range(1, len(answer.items) + 1))
    assert row["propensities"] == [1.0] * len(answer.items)
    assert row["prices"] == [item.price for item in answer.items]
    assert row["channels"] == [item.channel for item in answer.items]
    assert row["runner_ups"][:-1] == row["items"][1:]
    assert row["bids"] == [float(loaded.bids[loaded.items.row(item)]) for item in row["items"]]
    parts = zip(row["bids"], row["to_beat"], row["probabilities"], strict=True)
    assert row["prices"] == pytest.approx([min(bid, beat / (1000 * p)) for bid, beat, p in parts])
    assert row["stages"] == [stage.name for stage in answer.stages]
    assert row["stage_causes"] == [stage.cause for stage in answer.stages]
    assert (row["degraded"], row["calls"]) == (answer.degraded, 1)
    assert (row["user"], row["status"], dict(row["context"])) == (a_user(loaded), "OK", {"device": "phone"})
    assert row["bundle_version"] == answer.bundle_version
    assert row["bundle_created"] == loaded.manifest.created
    assert abs((datetime.now(UTC) - row["time"]).total_seconds()) < 60
    assert 0 < row["microseconds"] < 5e6


def test_a_failed_request_is_logged_with_its_status(client, loaded, answers):
    with pytest.raises(RankingFailed):
        client.rank(a_user(loaded), limit=0, request_id="refuse-me", seconds=5)
    row = logged(answers, "refuse-me")
    assert (row["status"], row["items"]) == ("INVALID_ARGUMENT", [])


def test_the_bundles_age_is_in_the_answer(client, loaded):
    age = (datetime.now(UTC) - loaded.manifest.created).total_seconds()
    assert client.rank(a_user(loaded), seconds=5).bundle_age_seconds == pytest.approx(age, abs=5)


def health_of(channel, service: str = "") -> tuple[int, dict[str, str]]:
    answer, call = health_pb2_grpc.HealthStub(channel).Check.with_call(
        health_pb2.HealthCheckRequest(service=service), timeout=5)
    return answer.status, dict(call.trailing_metadata())


def test_health_tells_version_and_age_of_the_bundle(channel, loaded):
    _, figures = health_of(channel)
    age = (datetime.now(UTC) - loaded.manifest.created).total_seconds()
    assert figures["sluice-bundle-version"] == loaded.version
    assert float(figures["sluice-bundle-age-seconds"]) == pytest.approx(age, abs=5)
    assert figures["sluice-answers-lost"] == "0"
    assert 0 < float(figures["sluice-floor-ms"]) < 1000
    assert (figures["sluice-waiting"], figures["sluice-queue-ms"]) == ("0", "0.00")


def test_answers_that_cannot_be_logged_show_in_health_and_fail_no_request(client, channel, loaded, answers):
    """A file stands where the day's folder should be: the disk's refusal."""
    today = answers / f"day={datetime.now(UTC).date().isoformat()}"
    kept = today.exists() and today.rename(answers.with_name("kept"))
    today.write_text("in the way")
    assert client.rank(a_user(loaded), request_id="wait-for-me", seconds=5).items
    until_status(channel, health_pb2.HealthCheckResponse.NOT_SERVING)
    assert "cannot be written" in health_of(channel)[1]["sluice-answer-log"]
    assert health_of(channel)[0] == health_pb2.HealthCheckResponse.SERVING
    assert client.rank(a_user(loaded), seconds=5).items
    today.unlink()
    if kept:
        kept.rename(today)
    until_status(channel, health_pb2.HealthCheckResponse.SERVING)
    assert logged(answers, "wait-for-me")["status"] == "OK"


def until_status(channel, status: int) -> None:
    end = time.monotonic() + 10
    while health_of(channel, RESPONSE_LOG_SERVICE)[0] != status:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_thousand_connections_that_ask_nothing_leave_the_others_served(patient, patient_client, loaded):
    """Half of them say nothing at all, the others begin to speak HTTP/2 and never read."""
    idle = [socket.create_connection(("127.0.0.1", patient.port), timeout=20) for _ in range(MANY)]
    for one in idle[::2]:
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    answers = [patient_client.rank(a_user(loaded), seconds=20) for _ in range(20)]
    for one in idle:
        one.close()
    assert all(answer.items and not answer.degraded for answer in answers)


def test_a_caller_that_takes_no_answer_leaves_the_others_served(patient, patient_client, loaded):
    """Though it holds more calls than may wait at a time; a few come at once, so that none is refused for the queue."""
    with SilentCaller(patient.port) as silent:
        for _ in range(HELD // 4):
            silent.ask(a_user(loaded), 4)
            answer = patient_client.rank(a_user(loaded), seconds=20)
            assert answer.items
            assert not answer.degraded


@pytest.mark.slow
def test_a_caller_that_reads_nothing_is_let_go(server, loaded):
    with SilentCaller(server.port) as silent:
        silent.ask(a_user(loaded), 1)
        assert silent.is_let_go(60)


def test_callers_who_cancel_leave_the_others_served(patient, patient_client, loaded):
    with grpc.insecure_channel(patient.target) as channel:
        rank = sluice_pb2_grpc.RankingStub(channel).Rank
        for _ in range(5):
            calls = [rank.future(pb.RankRequest(user_id=a_user(loaded)), timeout=5) for _ in range(20)]
            for call in calls:
                call.cancel()
            answer = patient_client.rank(a_user(loaded), seconds=20)
            assert answer.items
            assert not answer.degraded
        assert int(health_of(channel)[1]["sluice-waiting"]) == 0


def test_a_server_on_loopback_is_the_native_one_where_there_is_one(server):
    mapped = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert ("libgrpc++" in mapped) == (library() is not None)


@pytest.mark.parametrize(("wanted", "settings", "newer"), [
    ("", ServerSettings(host="127.0.0.1"), False),
    ("", ServerSettings(host="0.0.0.0"), True),
    ("", ServerSettings(host="0.0.0.0", balanced=True), False),
    ("1", ServerSettings(host="0.0.0.0"), False),
    ("1", ServerSettings(doors=Doors(tls=TlsFiles(certificate=Path("c"), key=Path("k")))), True),
])
def test_strangers_and_tls_are_for_the_newer_grpc(
    monkeypatch: pytest.MonkeyPatch, wanted: str, settings: ServerSettings, newer: bool
) -> None:
    monkeypatch.setenv("SLUICE_NATIVE", wanted)
    assert needs_newer(settings) == newer


def test_health_and_reflection_answer(channel):
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", "sluice.v1.Ranking"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert "sluice.v1.Ranking" in ProtoReflectionDescriptorDatabase(channel).get_services()


@pytest.mark.slow
def test_a_second_server_on_the_port_is_refused(server, bundle_folder, tmp_path):
    with pytest.raises(SluiceError, match=f"port {server.port} on 127.0.0.1 is taken"):
        ServerProcess(bundle_folder, tmp_path / "second.log", server.port, ("--workers", "1"))


@pytest.mark.slow
def test_sigterm_lets_running_requests_finish_and_refuses_new_connections(publish_bundle, loaded):
    """Each request takes at least SLOW_MS: however slow the machine, most are still running at the signal."""
    folder = publish_bundle(serve={"max_queue": 2 * BUSY} | PATIENT)
    command = [sys.executable, "-m", "benchmarks.serving.deadlines", str(folder), "--serve", f"--slow-ms={SLOW_MS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            rank = sluice_pb2_grpc.RankingStub(channel).Rank
            answers = [rank.future(pb.RankRequest(user_id=a_user(loaded)), timeout=30) for _ in range(BUSY)]
            assert answers[0].result().items
            server.send_signal(signal.SIGTERM)
            at_signal = running(answers)
            assert at_signal > 0
            until_refused(port)
            codes = [answer.code() for answer in answers]
        # What a slow machine takes in too late is refused, and never cancelled.
        assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
        assert codes.count(grpc.StatusCode.OK) > len(answers) - at_signal
        assert all(answer.result().items for answer in answers if answer.code() == grpc.StatusCode.OK)
        assert server.wait(15) == 0


@pytest.mark.slow
def test_sigterm_refuses_callers_that_never_pause(bundle_folder, loaded, tmp_path):
    """Answered or UNAVAILABLE, which a client may send again elsewhere; CANCELLED would blame the caller."""
    server = ServerProcess(bundle_folder, tmp_path / "server.log", options=("--workers", "1"))
    codes: list[str] = []
    started = threading.Barrier(CALLERS + 1)

    def ask() -> None:
        with RankingClient(server.target) as client:
            client.rank(a_user(loaded), seconds=60)
            started.wait(60)
            while True:
                try:
                    client.rank(a_user(loaded), seconds=60)
                except RankingFailed as failure:
                    codes.append(failure.code)
                    return

    threads = [threading.Thread(target=ask) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    started.wait(60)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert codes == ["UNAVAILABLE"] * CALLERS
    assert server.process.wait(15) == 0


@pytest.mark.slow
def test_sigterm_ends_a_server_whose_health_is_watched_by_one_that_takes_nothing(bundle_folder, loaded, tmp_path):
    """What it has answered is in the log."""
    options = ("--log-answers", str(tmp_path / "answers"), "--workers", "1")
    server = ServerProcess(bundle_folder, tmp_path / "server.log", options=options)
    with SilentCaller(server.port) as silent, grpc.insecure_channel(server.target) as channel:
        silent.ask("", 1, "grpc.health.v1.Health/Watch")
        silent.answered(1)
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        with RankingClient(server.target) as client:
            client.rank(a_user(loaded), seconds=60, request_id="last")
        server.process.send_signal(signal.SIGTERM)
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert server.process.wait(14) == 0
    assert logged(tmp_path / "answers", "last")["status"] == "OK"


@pytest.mark.slow
def test_a_collector_of_traces_that_hangs_does_not_hold_up_the_end(bundle_folder, loaded, tmp_path, monkeypatch):
    """Who has not ended after 15 s is killed, so that 15 s is what others may wait for."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{hanging.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        server = ServerProcess(bundle_folder, tmp_path / "server.log", options=("--workers", "1"))
        with RankingClient(server.target) as client:
            client.rank(a_user(loaded), seconds=60)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(15) == 0


def running(answers: list[grpc.Future]) -> int:
    return sum(not answer.done() for answer in answers)


def until_refused(port: int) -> None:
    """A connection that the closing socket had already taken in is reset; only then are connections refused."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionResetError:
            pass
        except ConnectionRefusedError:
            return
        time.sleep(0.005)
    pytest.fail("the server still takes connections 20 s after SIGTERM")
