"""Health says what is served, turns only the log's own service when answers cannot be written, and the others when
nothing is ranked."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from serving.access.gate import Gate
from serving.access.new_token import entry
from serving.proto import sluice_pb2_grpc
from serving.response_log.response_log import ResponseLog
from serving.server import bundle_health
from serving.server.bundle_health import MOST_WATCHING, RESPONSE_LOG_SERVICE, BundleHealth, bundle_age
from tests.serving.in_process_server import InProcessServer
from tests.serving.logged_responses import NOON, response
from tests.serving.silent_caller import SilentCaller

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
MANIFEST = Manifest(schema_version=SCHEMA_VERSION, name="shop", content_hash="0123456789abcdef", files={},
                    created=datetime(2026, 1, 5, tzinfo=UTC))


def test_age_counts_from_publishing() -> None:
    before = datetime.now(UTC) - timedelta(seconds=90)
    age = bundle_age(MANIFEST.model_copy(update={"created": before}))
    assert 90 <= age <= (datetime.now(UTC) - before).total_seconds()


def test_without_a_log_nothing_is_said_of_one() -> None:
    assert BundleHealth(MANIFEST, None).figures().keys() == {"sluice-bundle-version", "sluice-bundle-age-seconds"}
    assert BundleHealth(MANIFEST, None).figures()["sluice-bundle-version"] == "shop-0123456789ab"


def test_a_log_that_cannot_be_written_shows_until_it_can(tmp_path: Path) -> None:
    """A file stands where the day's folder should be."""
    log = ResponseLog(tmp_path, flush_seconds=0.02)
    health = BundleHealth(MANIFEST, log)
    with InProcessServer(sluice_pb2_grpc.RankingServicer(), health) as server, grpc.insecure_channel(
            server.target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        assert status_becomes(stub, SERVING)["sluice-answers-waiting"] == "0"
        day = tmp_path / f"day={NOON.date().isoformat()}"
        day.write_text("in the way")
        log.append(response(1))
        figures = status_becomes(stub, NOT_SERVING)
        assert "cannot be written" in figures["sluice-answer-log"]
        assert (figures["sluice-answers-waiting"], figures["sluice-answers-lost"]) == ("1", "0")
        day.unlink()
        assert "sluice-answer-log" not in status_becomes(stub, SERVING)
    log.close()


def status_becomes(stub: health_pb2_grpc.HealthStub, wanted: int) -> dict[str, str]:
    """The trailing metadata of the first check of the log's service that has this status."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            answer, call = stub.Check.with_call(
                health_pb2.HealthCheckRequest(service=RESPONSE_LOG_SERVICE), timeout=5)
        except grpc.RpcError:  # not watched yet
            continue
        if answer.status == wanted:
            return dict(call.trailing_metadata())
        time.sleep(0.02)
    pytest.fail(f"the status did not become {wanted}")


def test_what_ranks_is_not_serving_while_all_of_it_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And serves again once something moves; the log's service stays as it is."""
    monkeypatch.setattr(bundle_health, "WATCH_SECONDS", 0.02)
    stuck, health = [0.0], BundleHealth(MANIFEST, None)

    async def becomes(stub: health_pb2_grpc.HealthStub, wanted: int, service: str = "shop") -> None:
        asked = health_pb2.HealthCheckRequest(service=service)
        while (await stub.Check(asked, timeout=5)).status != wanted:
            await asyncio.sleep(0.02)

    async def drive() -> None:
        server = grpc.aio.server()
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        for service in ("shop", RESPONSE_LOG_SERVICE):
            health.set(service, SERVING)
        watching = asyncio.create_task(health.watch_ranking(["shop"], lambda: stuck[0]))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for seconds, wanted in ((0.0, SERVING), (60.0, NOT_SERVING), (0.0, SERVING)):
                stuck[0] = seconds
                await asyncio.wait_for(becomes(stub, wanted), 20)
                await becomes(stub, SERVING, RESPONSE_LOG_SERVICE)
        watching.cancel()
        await server.stop(None)

    asyncio.run(drive())


def test_so_many_watch_of_one_caller_and_no_more_until_one_leaves(tmp_path: Path) -> None:
    """Four callers who take a quarter of what others leave do leave some to a fifth."""
    asked = health_pb2.HealthCheckRequest()
    names = [f"token of caller {number}" for number in range(5)]
    (tmp_path / "access.toml").write_text("".join(entry(name, name, ["ranking"], None) for name in names))

    async def drive() -> None:
        server, health = grpc.aio.server(), BundleHealth(MANIFEST, None, gate=Gate(tmp_path / "access.toml"))
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)

            def watch(name: str) -> grpc.aio.UnaryStreamCall:
                return stub.Watch(asked, timeout=20, metadata=(("authorization", f"Bearer {name}"),))

            watching: list[grpc.aio.UnaryStreamCall] = []
            for name in names[:4]:
                share = round((MOST_WATCHING - len(watching)) / 4)
                watching += [watch(name) for _ in range(share)]
                assert {(await one.read()).status for one in watching[-share:]} == {SERVING}
                with pytest.raises(grpc.aio.AioRpcError, match="ask Check") as caught:
                    await watch(name).read()
                assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await admitted(watch(names[4]))
            assert not await admitted(watch(names[0]))
            assert (await stub.Check(asked, timeout=20)).status == SERVING
            for one in watching:
                one.cancel()
            while not await admitted(watch(names[0])):
                await asyncio.sleep(0.01)
        await server.stop(None)

    async def admitted(watch: grpc.aio.UnaryStreamCall) -> bool:
        try:
            return bool(await watch.read())
        except grpc.aio.AioRpcError:
            return False

    asyncio.run(asyncio.wait_for(drive(), 20))


def test_who_watches_is_told_though_another_has_left() -> None:
    health, asked = BundleHealth(MANIFEST, None), health_pb2.HealthCheckRequest()

    async def drive() -> None:
        server = grpc.aio.server()
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub, status = health_pb2_grpc.HealthStub(channel), health_pb2.HealthCheckResponse
            leaves, stays, unknown = stub.Watch(asked), stub.Watch(asked), stub.Watch(
                health_pb2.HealthCheckRequest(service="later"))
            assert [(await one.read()).status for one in (leaves, stays, unknown)] == [
                SERVING, SERVING, status.SERVICE_UNKNOWN]
            leaves.cancel()
            last = stub.Watch(asked)
            assert (await last.read()).status == SERVING
            health.set("later", SERVING)
            assert (await unknown.read()).status == SERVING
            health.stop()
            health.set("", SERVING)
            assert {(await one.read()).status for one in (stays, last, unknown)} == {NOT_SERVING}
            assert (await stub.Check(asked, timeout=20)).status == NOT_SERVING
        await server.stop(None)

    asyncio.run(asyncio.wait_for(drive(), 20))


def test_a_watcher_that_takes_nothing_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_health, "WATCH_SECONDS", 0.02)
    health = BundleHealth(MANIFEST, None)

    async def drive() -> None:
        server = grpc.aio.server()
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with SilentCaller(port) as silent:
                silent.ask("", 1, "grpc.health.v1.Health/Watch")
                await asyncio.to_thread(silent.answered, 1)
                watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
                assert (await watch.read()).status == SERVING
                watching = asyncio.create_task(health.watch_ranking([""], lambda: 60.0))
                assert (await watch.read()).status == NOT_SERVING
                watching.cancel()
        await server.stop(None)

    asyncio.run(asyncio.wait_for(drive(), 20))
