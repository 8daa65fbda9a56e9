"""`sluice serve models:/NAME@ALIAS` as it runs: real processes, a real registry, callers that never stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlparse

import grpc
import pyarrow.dataset as ds
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.serving import process_figures
from contracts.bundle import bundle
from contracts.errors import SluiceError
from models.tracking.bundle_registry import CHAMPION, BundleRegistry, Lineage, RegisteredBundle
from serving.replay import response_history
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from serving.workers.supervisor import PROBATION_DEATHS, Supervisor, SupervisorSettings
from sluice.airflow_demo.steady_load import SteadyLoad
from sluice.demo.server_process import ServerProcess
from tests.serving.balancer.running_balancer import needs_haproxy
from tests.serving.bundle_variants import variant, with_other_logits

USERS = [f"u{number:02d}" for number in range(60)]
PER_SECOND = 8.0
GONE = "is left by its callers and gone"


def damage(version: RegisteredBundle) -> None:
    """Changes a byte of its weights in the store."""
    weights = Path(urlparse(version.source).path) / "bundle" / "rank" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)


class Platform:
    """A registry with two good bundles and a bad one, and a server of the champion."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.uri = f"sqlite:///{folder / 'mlflow.db'}"
        self.registry = BundleRegistry(self.uri)
        self.good = [self.registry.register(variant(source, folder, mark), Lineage()) for mark in ("one", "two")]
        self.bad = self.registry.register(with_other_logits(source, folder), Lineage())
        self.corrupt = self.registry.register(variant(source, folder, "corrupt"), Lineage())
        damage(self.corrupt)
        self.answers, self.log, self.cache = folder / "answers", folder / "server.log", folder / "cache"

    def start(self, port: int = 0, workers: int = 1, uri: str = "", more: tuple[str, ...] = ()) -> ServerProcess:
        self.registry.point(self.good[0], CHAMPION)
        options = ("--registry", uri or self.uri, "--poll-seconds", "0.2", "--connection-seconds", "1",
                   "--log-answers", str(self.answers), "--workers", str(workers), "--cache", str(self.cache), *more)
        return ServerProcess(f"models:/market@{CHAMPION}", self.log, port, options)

    def change(self, version: RegisteredBundle) -> None:
        """Moves the alias and waits until the old process is gone."""
        gone = self.log.read_text().count(GONE)
        self.registry.point(version, CHAMPION)
        until(lambda: self.log.read_text().count(GONE) > gone)


@pytest.fixture(scope="module")
def platform(bundle_folder, tmp_path_factory) -> Platform:
    return Platform(bundle_folder, tmp_path_factory.mktemp("platform"))


@pytest.fixture
def server(platform):
    process = platform.start()
    yield process
    assert process.stop() == 0
    shutil.rmtree(platform.answers)


def until(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def version_of(server) -> str:
    with RankingClient(server.target) as client:
        return client.rank("u01", seconds=20).bundle_version


def workers(server) -> list[int]:
    return process_figures.workers(server.process.pid)


def swap_under_load(platform: Platform, server: ServerProcess, swaps: int, processes: int = 1) -> None:
    with SteadyLoad(server.target, USERS, PER_SECOND) as load:
        until(lambda: len(load.outcomes) > 20)
        for number in range(swaps):
            wanted = platform.good[(number + 1) % 2]
            platform.change(wanted)
            assert len(workers(server)) == processes
            assert version_of(server) == wanted.version
    assert load.failed == []
    assert {outcome.version for outcome in load.outcomes} == {version.version for version in platform.good}
    assert {outcome.channel for outcome in load.outcomes} == {"kept", "new"}
    seen = len(load.outcomes) + swaps
    until(lambda: response_history.rows(platform.answers).num_rows == seen)


@pytest.mark.slow
def test_two_workers_are_changed_together(platform):
    """And both have callers of their own; also where one of the first two was killed and replaced."""
    server = platform.start(workers=2)
    begun = ", published "  # said by each that begins to serve
    os.kill(workers(server)[0], signal.SIGKILL)
    until(lambda: platform.log.read_text().count(begun) == 3)
    swap_under_load(platform, server, 2, processes=2)
    with WholeAnswers(server.target, USERS, PER_SECOND) as load:
        until(lambda: load.whole > 10)
        before = platform.log.read_text().count(begun)
        os.kill(workers(server)[0], signal.SIGKILL)
        until(lambda: platform.log.read_text().count(begun) > before)
    assert {outcome.code.partition(":")[0] for outcome in load.failed} <= {"UNAVAILABLE"}
    assert len(load.failed) < len(load.outcomes) / 2  # those under way in that process
    assert len(load.failed) + load.whole + load.degraded == len(load.outcomes)
    assert server.stop() == 0
    files = ds.dataset(platform.answers, format="parquet").files
    generations = 3
    assert generations < len({Path(file).name.split("-")[2] for file in files}) <= 2 * generations + 1
    shutil.rmtree(platform.answers)


@needs_haproxy
@pytest.mark.slow
def test_behind_a_balancer_bundles_are_changed_and_a_killed_worker_costs_no_request(platform):
    """Nor do its connections that are asked to come again; what was under way in the killed one is sent again."""
    server = platform.start(workers=2, more=("--balancer",))
    swap_under_load(platform, server, 2, processes=2)
    begun = ", published "  # said by each that begins to serve
    with WholeAnswers(server.target, USERS, PER_SECOND) as load:
        until(lambda: load.whole > 10)
        before = platform.log.read_text().count(begun)
        os.kill(workers(server)[0], signal.SIGKILL)
        until(lambda: platform.log.read_text().count(begun) > before)
    assert load.failed == []
    assert server.stop() == 0
    assert "stumbled" not in platform.log.read_text()
    assert " s ago, to the balancer on 127.0.0.1:" in platform.log.read_text()
    shutil.rmtree(platform.answers)


@needs_haproxy
@pytest.mark.slow
def test_a_balancer_ends_with_a_supervisor_that_is_killed(platform):
    server = platform.start(more=("--balancer",))
    version_of(server)
    server.process.kill()
    server.process.wait()
    until(lambda: refused(server.port), 30)
    shutil.rmtree(platform.answers)


@pytest.mark.slow
def test_a_supervisor_killed_under_load_is_followed_by_one_that_needs_no_registry(platform):
    """Its workers end with it; callers who go on asking are answered whole again by the next on its port."""
    first = platform.start()
    version = version_of(first)
    with WholeAnswers(first.target, USERS, PER_SECOND) as load:
        until(lambda: load.whole > 10)
        first.process.kill()
        first.process.wait()
        until(lambda: refused(first.port), 30)
        second = platform.start(first.port, uri="http://127.0.0.1:9")
        before = load.whole
        until(lambda: load.whole > before + 10)
    assert "is served, as before" in platform.log.read_text()
    assert {outcome.version for outcome in load.outcomes if outcome.code == "OK"} == {version}
    assert {outcome.code.partition(":")[0] for outcome in load.failed} <= {
        "UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
    assert len(load.failed) + load.whole + load.degraded == len(load.outcomes)
    assert second.stop() == 0
    shutil.rmtree(platform.answers)


@pytest.mark.slow
def test_six_changes_under_load_without_a_failed_request(platform, server):
    swap_under_load(platform, server, 6)


@pytest.mark.slow
def test_a_bad_bundle_is_refused_while_the_old_one_keeps_serving(platform, server):
    """Also a damaged one; and health tells which one is served."""
    with WholeAnswers(server.target, USERS, PER_SECOND) as load:
        platform.registry.point(platform.bad, CHAMPION)
        until(lambda: f"refused {platform.bad.version}" in platform.log.read_text())
        platform.registry.point(platform.corrupt, CHAMPION)
        until(lambda: f"refused {platform.corrupt.version}" in platform.log.read_text())
        time.sleep(1)
    assert "parity rows differ" in platform.log.read_text()
    assert "rank/weights.safetensors" in platform.log.read_text()
    assert (load.failed, load.degraded) == ([], 0)
    assert {outcome.version for outcome in load.outcomes} == {platform.good[0].version}
    with grpc.insecure_channel(server.target) as channel:
        _, call = health_pb2_grpc.HealthStub(channel).Check.with_call(health_pb2.HealthCheckRequest(), timeout=20)
        assert dict(call.trailing_metadata())["sluice-bundle-version"] == platform.good[0].version
    platform.change(platform.good[1])
    assert version_of(server) == platform.good[1].version


@pytest.mark.slow
def test_a_registry_that_fails_under_load_costs_no_request(platform, server):
    """Nor an answer that is less than whole; when it is mended, what it names comes."""
    database, cannot = Path(urlparse(platform.uri).path), "the registry cannot be asked"
    kept, load = database.read_bytes(), WholeAnswers(server.target, USERS, PER_SECOND)
    with load:
        until(lambda: len(load.outcomes) > 10)
        database.write_bytes(b"no data base" * 1000)
        until(lambda: platform.log.read_text().count(cannot) > 3)
        during = len(load.outcomes)
        until(lambda: len(load.outcomes) > during + 10)
        database.write_bytes(kept)
        platform.change(platform.good[1])
    assert (load.failed, load.degraded) == ([], 0)
    assert {outcome.version for outcome in load.outcomes} == {version.version for version in platform.good}


class WholeAnswers(SteadyLoad):
    """Counts answers, and those that are not whole."""

    whole = degraded = 0

    def answered(self, request, answer):
        self.degraded += answer.degraded
        self.whole += not answer.degraded


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_and_one_without_supervisor_ends(platform, server, tmp_path):
    [first] = workers(server)
    os.kill(first, signal.SIGKILL)
    until(lambda: workers(server) not in ([], [first]))
    with RankingClient(server.target) as client:
        client.wait_ready(60)
        assert client.rank("u01", seconds=20).items
    orphan = platform.start(more=("--cache", str(tmp_path / "cache")))
    orphan.process.kill()
    orphan.process.wait()
    until(lambda: refused(orphan.port), 30)


@pytest.mark.slow
@pytest.mark.parametrize("left", [False, True])  # by its callers is the bundle before, and has to be loaded again
def test_a_bundle_whose_workers_keep_dying_is_rolled_back(platform, left):
    """And is not taken up again, though the alias still names it, nor where those of the bundle before die as well."""
    server = platform.start()
    before, fresh = platform.good
    platform.registry.point(fresh, CHAMPION)
    until(lambda: answers_with(server, fresh.version))
    until(lambda: not left or f"{before.version} {GONE}" in platform.log.read_text())

    def killed() -> bool:
        for pid in process_figures.workers(server.process.pid, named=fresh.version):
            with contextlib.suppress(OSError):  # it has gone meanwhile
                os.kill(pid, signal.SIGKILL)
        return f"the workers of {fresh.version} keep dying" in platform.log.read_text()

    until(killed)
    until(lambda: answers_with(server, before.version))
    until(lambda: f"{fresh.version} {GONE}" in platform.log.read_text())
    time.sleep(1)
    assert platform.log.read_text().count(f"loading {fresh.version}") == 1
    for _ in range(PROBATION_DEATHS):
        [served] = workers(server)
        os.kill(served, signal.SIGKILL)
        until(lambda served=served: workers(server) not in ([], [served]))
    until(lambda: answers_with(server, before.version))
    assert f"the workers of {before.version} keep dying" not in platform.log.read_text()
    assert server.stop() == 0
    shutil.rmtree(platform.answers)


@pytest.mark.slow
def test_while_a_bundle_is_rolled_back_its_workers_that_die_begin_anew(platform):
    """Beside one of the bundle before that does not end: it has callers, and is stopped as it is asked to."""
    server = platform.start(workers=2, more=("--connection-seconds", "120"))
    before, fresh = platform.good
    old = workers(server)
    channels = [grpc.insecure_channel(server.target, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(12)]
    for channel in channels:
        grpc.channel_ready_future(channel).result(60)
    time.sleep(1)  # the supervisor is told of them twice a second
    platform.registry.point(fresh, CHAMPION)
    until(lambda: answers_with(server, fresh.version))

    def of_fresh() -> list[int]:
        return [pid for pid in workers(server) if pid not in old]

    def deaths() -> int:
        return platform.log.read_text().count(f"that serves {fresh.version} has died")

    enough = 2 * PROBATION_DEATHS
    for number in range(1, enough):
        until(lambda: len(of_fresh()) == 2)
        os.kill(of_fresh()[-1], signal.SIGKILL)
        until(lambda number=number: deaths() == number)
    until(lambda: len(of_fresh()) == 2)
    os.kill(old[0], signal.SIGKILL)
    os.kill(old[1], signal.SIGSTOP)
    os.kill(of_fresh()[-1], signal.SIGKILL)
    until(lambda: f"the workers of {fresh.version} keep dying; back to {before.version}" in platform.log.read_text())
    until(lambda: len(of_fresh()) == 2)
    assert old[1] in workers(server)  # it has not ended: who died began anew beside it
    until(lambda: answers_with(server, before.version))
    assert old[1] not in workers(server)
    for channel in channels:
        channel.close()
    assert server.stop() == 0
    shutil.rmtree(platform.answers)


def answers_with(server, version: str) -> bool:
    """False also while nobody answers."""
    try:
        return version_of(server) == version
    except RankingFailed:
        return False


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return True
    return False


@pytest.mark.slow
def test_a_disk_that_takes_no_note_of_what_is_served_stops_nothing(platform):
    """Nothing can be written where it would be kept."""
    shutil.rmtree(platform.cache, ignore_errors=True)
    (platform.cache / "serving.json" / "in the way").mkdir(parents=True)
    server = platform.start()
    assert version_of(server) == platform.good[0].version
    assert "cannot be kept as what was served last" in platform.log.read_text()
    assert server.stop() == 0
    shutil.rmtree(platform.cache)
    shutil.rmtree(platform.answers)


@pytest.mark.slow
def test_a_second_server_on_the_port_or_with_the_cache_is_refused(platform, server, tmp_path):
    registry, log = ("--registry", platform.uri, "--cache"), tmp_path / "second.log"
    with pytest.raises(SluiceError, match=f"port {server.port} on 127.0.0.1 cannot be had"):
        ServerProcess(f"models:/market@{CHAMPION}", log, server.port, (*registry, str(tmp_path / "cache")))
    with pytest.raises(SluiceError, match="keeps the bundles of another `sluice serve`"):
        ServerProcess(f"models:/market@{CHAMPION}", log, options=(*registry, str(platform.cache)))


@pytest.mark.slow
@pytest.mark.parametrize(("alias", "sentence"), [("nobody", "names no such bundle"), ("shadow", "parity rows differ")])
def test_without_a_first_bundle_nothing_is_served(platform, tmp_path, alias, sentence):
    platform.registry.point(platform.bad, "shadow")
    with pytest.raises(SluiceError, match=sentence):
        ServerProcess(f"models:/market@{alias}", tmp_path / "server.log",
                      options=("--registry", platform.uri, "--cache", str(tmp_path / "cache")))


class Counted:
    """A source of bundles that counts what it fetches."""

    compares = True

    def __init__(self, folders: list[Path]) -> None:
        self._folders = {bundle.read_manifest(folder).version: folder for folder in folders}
        self.versions, self.fetched = list(self._folders), list[str]()
        self.wanted = self.versions[0]

    def latest(self) -> str:
        return self.wanted

    def fetch(self, version: str) -> Path:
        self.fetched.append(version)
        return self._folders[version]


@pytest.mark.slow
def test_a_bundle_is_fetched_once_however_often_it_is_looked_for_meanwhile(bundle_folder, tmp_path):
    source = Counted([variant(bundle_folder, tmp_path, mark) for mark in ("one", "two")])
    supervisor = Supervisor(source, SupervisorSettings(poll_seconds=0.01, connection_seconds=1))

    def change(port: int) -> None:
        try:
            source.wanted = source.versions[1]
            with RankingClient(f"127.0.0.1:{port}") as client:
                until(lambda: client.rank("u01", seconds=20).bundle_version == source.wanted)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def begin(_: str, port: int) -> None:
        changing.append(threading.Thread(target=change, args=(port,)))
        changing[0].start()

    changing = list[threading.Thread]()
    kept = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        supervisor.run(begin)
    finally:
        for thread in changing:
            thread.join()
        for name, handler in kept.items():
            signal.signal(name, handler)
    assert source.fetched == source.versions
