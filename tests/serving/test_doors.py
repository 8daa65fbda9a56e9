"""Every door of a real server of two processes, over real channels: mutual TLS, tokens of the file and of an issuer."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from typer.testing import CliRunner

from serving.access.client_credentials import ClientCredentials
from serving.access.new_token import entry
from serving.gateway.app import Upstream
from serving.proto import sluice_pb2 as pb
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from sluice.cli import app
from sluice.demo.server_process import ServerProcess
from tests.serving.access.certificates import AUDIENCE, ISSUER, Authority, Issuer, Pair
from tests.serving.balancer.running_balancer import needs_haproxy
from tests.serving.gateway.running_gateway import RunningGateway

SHOP, OPS, BOOKS, LATE = "shop-token-of-the-test", "ops-token-of-the-test", "books-token-of-the-test", "late-token"
PAST = datetime(2020, 1, 1, tzinfo=UTC)
SECONDS, WORKERS = 20.0, 2
METHODS = {
    "Ranking/Rank": "ranking", "Ranking/Score": "ranking", "Ranking/WhyNot": "ranking",
    "Events/RecordEvents": "events", "Catalog/Upsert": "catalogue", "Catalog/Withdraw": "catalogue",
    "Catalog/SetBids": "catalogue", "Catalog/SetStock": "catalogue", "Catalog/Status": "catalogue",
}


@dataclass(frozen=True)
class House:
    """A server with all doors, and what opens them."""

    server: ServerProcess
    log: Path
    access: Path
    authority: Authority
    issuer: Issuer
    files: Pair
    caller: Pair

    def with_token(self, token: str = "", certificate: Pair | None = None, **other: object) -> ClientCredentials:
        pair = certificate or self.caller
        shown = {"ca": self.authority.file, "certificate": pair.certificate, "key": pair.key, **other}
        return ClientCredentials(token=token, **shown)  # type: ignore[arg-type]

    def code(self, credentials: ClientCredentials, seconds: float = SECONDS) -> str:
        """What a Rank ends in."""
        try:
            with RankingClient(self.server.target, credentials) as client:
                return "OK" if client.rank("u01", seconds=seconds).items else "EMPTY"
        except RankingFailed as failed:
            return failed.code


def loopback() -> str:
    """IPv6's where the machine has one."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return "::1"
    return "127.0.0.1"


@contextlib.contextmanager
def built(bundle_folder: Path, folder: Path, *options: str) -> Iterator[House]:
    """With so many more options."""
    authority, issuer = Authority(folder / "authority"), Issuer()
    tls = authority.server(client_ca=authority.file)
    (folder / "issuer.pem").write_bytes(issuer.public)
    access = folder / "access.toml"
    access.write_text("".join([
        entry(SHOP, "shop", ["ranking"], None), entry(OPS, "ops", ["administration"], None),
        entry(BOOKS, "books", ["catalogue"], None), entry(LATE, "late", ["ranking"], PAST),
        f'[jwt]\nkey_file = "issuer.pem"\nalgorithms = ["ES256"]\nissuer = "{ISSUER}"\naudience = "{AUDIENCE}"\n']))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SLUICE_LOG_FORMAT", "json")
        environment.setenv("SLUICE_LOG_CALLS", "all")
        server = ServerProcess(bundle_folder, folder / "log", options=(
            "--host", loopback(), "--workers", str(WORKERS), "--access", str(access), "--tls-certificate",
            str(tls.certificate), "--tls-key", str(tls.key), "--tls-client-ca", str(authority.file), *options))
    yield House(server, folder / "log", access, authority, issuer, Pair(tls.certificate, tls.key),
                authority.pair("caller", "caller@example.com"))
    assert server.stop() == 0


@pytest.fixture(scope="module")
def house(bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with built(bundle_folder, tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.fixture(scope="module")
def http(house: House) -> Iterator[RunningGateway]:
    with RunningGateway(Upstream(house.server.target, house.with_token().of_channel())) as running:
        yield running


@pytest.mark.slow
def test_who_has_a_certificate_and_a_token_comes_in(house: House) -> None:
    assert house.code(house.with_token(SHOP)) == "OK"
    assert house.code(house.with_token(house.issuer.token())) == "OK"


def test_who_has_no_token_a_wrong_or_an_expired_one_is_not_known(house: House) -> None:
    for token in ("", "wrong", LATE, house.issuer.token(ends=-60), Issuer().token(), house.issuer.token(aud="other")):
        assert house.code(house.with_token(token)) == "UNAUTHENTICATED"


def test_who_lacks_the_role_is_refused(house: House) -> None:
    for token in (OPS, BOOKS, house.issuer.token(roles=["catalogue"]), house.issuer.token(roles=[])):
        assert house.code(house.with_token(token)) == "PERMISSION_DENIED"


def test_no_method_of_the_proto_is_left_out() -> None:
    services = pb.DESCRIPTOR.services_by_name.items()
    assert {f"{name}/{method.name}" for name, service in services for method in service.methods} == METHODS.keys()


@pytest.mark.parametrize(("method", "role"), METHODS.items())
def test_every_method_has_its_role(house: House, method: str, role: str) -> None:
    """Who has it comes as far as the method, which keeps nothing here, or finds no request."""
    def code(token: str) -> str:
        with house.with_token().channel(house.server.target) as channel, pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(f"/sluice.v1.{method}")(
                b"", timeout=SECONDS, metadata=house.with_token(token).metadata)
        return str(refused.value.code().name)

    assert code("") == code("wrong") == "UNAUTHENTICATED"
    others = {"ranking", "events", "catalogue"} - {role}
    assert {code(house.issuer.token(roles=[other])) for other in others} == {"PERMISSION_DENIED"}
    assert code(house.issuer.token(roles=[role])) in ("FAILED_PRECONDITION", "INVALID_ARGUMENT")


@pytest.mark.parametrize(("path", "role"), [
    ("/v1/rank", "ranking"), ("/v1/events", "events"), ("/v1/catalog/status", "catalogue")])
def test_over_http_every_path_has_its_role(http: RunningGateway, house: House, path: str, role: str) -> None:
    def status(token: str) -> int:
        return http.post(path, {}, **{"Authorization": f"Bearer {token}", "Grpc-Timeout": "20S"}).status

    assert status("wrong") == 401
    others = {"ranking", "events", "catalogue"} - {role}
    assert {status(house.issuer.token(roles=[other])) for other in others} == {403}
    assert status(house.issuer.token(roles=[role])) == 400


def test_lines_of_the_log_are_json_with_both_ids_and_nothing_secret(http: RunningGateway, house: House) -> None:
    trace, token = "0af7651916cd43dd8448eb211c80319c", house.issuer.token()
    about = {"traceparent": f"00-{trace}-b7ad6b7169203331-00", "Authorization": f"Bearer {token}",
             "Grpc-Timeout": "20S"}
    asked = {"user_id": "user-of-the-log", "request_id": "request-of-the-log", "limit": 1}
    assert http.post("/v1/rank", asked, **about).status == 200
    assert until(lambda: trace in house.log.read_text().rpartition("\n")[0])
    text = house.log.read_text().rpartition("\n")[0]  # the last line may still be written
    ours = [line for line in text.splitlines() if not re.match(r"serving |[IWEF]\d{4} |WARNING: All log", line)]
    lines = [json.loads(line) for line in ours]  # besides, gRPC's core has its own
    [call] = [line for line in lines if line.get("trace_id") == trace]
    assert (call["request_id"], call["method"], call["status"]) == ("request-of-the-log", "Rank", "OK")
    assert 0 < call["seconds"] < SECONDS
    assert not [secret for secret in (SHOP, OPS, BOOKS, LATE, token, "user-of-the-log") if secret in text]


def test_without_a_certificate_of_the_authority_nobody_is_heard(house: House) -> None:
    stranger = Authority(house.access.parent / "strangers").pair("stranger", "caller@example.com")
    assert house.code(house.with_token(SHOP, certificate=stranger), seconds=2) == "UNAVAILABLE"
    assert house.code(ClientCredentials(ca=house.authority.file, token=SHOP), seconds=2) == "UNAVAILABLE"


def test_plain_text_is_not_heard_on_a_tls_port(house: House) -> None:
    assert house.code(ClientCredentials(token=SHOP), seconds=2) == "UNAVAILABLE"
    host, _, port = house.server.target.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=20) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"HTTP/1.1 200" not in raw.recv(1024)


@pytest.mark.slow
@needs_haproxy
def test_a_balancer_stands_at_the_same_doors(bundle_folder: Path, tmp_path: Path) -> None:
    with built(bundle_folder, tmp_path, "--balancer") as balanced:
        assert balanced.code(balanced.with_token(SHOP)) == "OK"
        assert balanced.code(balanced.with_token("wrong")) == "UNAUTHENTICATED"
        assert balanced.code(ClientCredentials(ca=balanced.authority.file, token=SHOP), seconds=2) == "UNAVAILABLE"
        assert balanced.code(ClientCredentials(token=SHOP), seconds=2) == "UNAVAILABLE"


def test_a_caller_does_not_trust_another_authoritys_server(house: House) -> None:
    other = Authority(house.access.parent / "others").file
    assert house.code(house.with_token(SHOP, ca=other), seconds=2) == "UNAVAILABLE"


def test_balancers_ask_for_health_and_see_no_figures(house: House) -> None:
    with house.with_token().channel(house.server.target) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        for token, sees in (("", False), ("wrong", False), (SHOP, False), (BOOKS, True), (OPS, True)):
            answer, call = check.with_call(
                health_pb2.HealthCheckRequest(), timeout=SECONDS, metadata=house.with_token(token).metadata)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert ("sluice-bundle-version" in dict(call.trailing_metadata())) == sees


def test_reflection_is_for_administration(house: House) -> None:
    asked = [reflection_pb2.ServerReflectionRequest(list_services="")]
    with house.with_token().channel(house.server.target) as channel:
        reflect = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        for token, code in (("", "UNAUTHENTICATED"), (SHOP, "PERMISSION_DENIED")):
            with pytest.raises(grpc.RpcError) as caught:
                list(reflect(iter(asked), timeout=SECONDS, metadata=house.with_token(token).metadata))
            assert caught.value.code().name == code
        [answer] = reflect(iter(asked), timeout=SECONDS, metadata=house.with_token(OPS).metadata)
        assert "sluice.v1.Ranking" in [one.name for one in answer.list_services_response.service]


def test_the_command_takes_certificates_and_the_token(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_TOKEN", SHOP)
    asked = ["rank", "--user", "u01", "--target", house.server.target, "--tls-ca", str(house.authority.file),
             "--tls-certificate", str(house.caller.certificate), "--tls-key", str(house.caller.key), "--timeout", "20"]
    found = CliRunner().invoke(app, [*asked, "--json"])
    assert json.loads(found.stdout)["items"]
    monkeypatch.setenv("SLUICE_TOKEN", "wrong")
    assert "UNAUTHENTICATED" in str(CliRunner().invoke(app, asked).output)


def test_changed_tokens_and_certificates_are_in_force_without_a_restart(house: House) -> None:
    added = house.access.read_text() + entry("fresh-token", "fresh", ["ranking"], None)
    house.access.write_text(added.replace('name = "late"', 'name = "still late"'))
    assert until(lambda: house.code(house.with_token("fresh-token")) == "OK")
    fresh = Authority(house.access.parent / "renewed")
    renewed, kept = fresh.server(), (house.files.key.read_bytes(), house.files.certificate.read_bytes())
    for new, old in ((renewed.key, house.files.key), (renewed.certificate, house.files.certificate)):
        os.replace(new, old)
    taken = f"the certificate {house.files.certificate} has changed"
    assert until(lambda: house.code(house.with_token(SHOP, ca=fresh.file), seconds=2) == "OK"
                 and house.log.read_text().count(taken) >= WORKERS)  # each worker looks when a connection comes
    house.files.key.write_bytes(kept[0])
    assert house.code(house.with_token(SHOP, ca=fresh.file), seconds=2) == "OK"  # half a renewal is none
    house.files.certificate.write_bytes(kept[1])
    assert until(lambda: house.code(house.with_token(SHOP), seconds=2) == "OK")
    assert house.log.read_text().count("has changed and is in force") >= 2


def until(holds: object, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def test_the_log_holds_no_secret_and_says_what_was_refused(house: House) -> None:
    """Of whatever the tests before have asked."""
    assert house.code(house.with_token("wrong")) == "UNAUTHENTICATED"
    assert until(lambda: "refused at the door" in house.log.read_text())
    log = house.log.read_text()
    secrets = [SHOP, OPS, BOOKS, LATE, "fresh-token", "PRIVATE KEY", house.issuer.token().split(".")[1][:20]]
    assert [secret for secret in secrets if secret in log] == []
    assert "WITHOUT TLS" not in log
