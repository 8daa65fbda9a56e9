"""TLS at the balancer: who may come in, and certificates that are renewed while it serves."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
from pathlib import Path

import grpc
import pytest

from contracts.errors import ConfigError
from serving.access.tls import TlsFiles
from serving.balancer import balancer
from serving.balancer.certificates import Certificates
from tests.serving.access.certificates import Authority
from tests.serving.balancer.running_balancer import RECORD, balanced, needs_haproxy, open_channel

SECONDS = 5.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


async def heard(port: int, credentials: grpc.ChannelCredentials | None) -> str:
    """The status of a call on a connection of its own."""
    async with open_channel(port, credentials) as channel:
        try:
            await channel.unary_unary(RECORD)(b"", timeout=SECONDS)
        except grpc.aio.AioRpcError as error:
            return error.code().name
    return "OK"


def trusting(authority: Authority, known: bool = False) -> grpc.ChannelCredentials:
    """Of a caller that trusts the authority's servers; one that is `known` has a certificate by it too."""
    if not known:
        return grpc.ssl_channel_credentials(authority.file.read_bytes())
    pair = authority.pair("caller", "caller@example.com")
    return grpc.ssl_channel_credentials(authority.file.read_bytes(), pair.key.read_bytes(),
                                        pair.certificate.read_bytes())


@needs_haproxy
def test_callers_come_by_tls_alone_and_are_refused_as_others_are(authority: Authority) -> None:
    async def drive() -> None:
        async with balanced(0.1, tls=authority.server(), credentials=trusting(authority)) as before:
            assert await before.record() == "127.0.0.1"
            await before.begin(1, 5.0)
            assert await before.rank(0.1) == "RESOURCE_EXHAUSTED"
            assert await heard(before.port, None) == "UNAVAILABLE"
            assert await heard(before.port, grpc.ssl_channel_credentials()) == "UNAVAILABLE"

    asyncio.run(drive())


@needs_haproxy
def test_with_an_authority_callers_need_a_certificate(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "strangers").pair("stranger", "caller@example.com")
    strange = grpc.ssl_channel_credentials(authority.file.read_bytes(), stranger.key.read_bytes(),
                                           stranger.certificate.read_bytes())

    async def drive() -> None:
        files = authority.server(client_ca=authority.file)
        async with balanced(0.01, tls=files, credentials=trusting(authority, known=True)) as before:
            assert await before.record() == "127.0.0.1"
            assert await heard(before.port, trusting(authority)) == "UNAVAILABLE"
            assert await heard(before.port, strange) == "UNAVAILABLE"

    asyncio.run(drive())


@needs_haproxy
def test_renewed_files_are_in_force_for_new_connections_and_half_a_renewal_is_not(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(balancer, "LOOK_SECONDS", 0.0)
    fresh = Authority(tmp_path / "fresh")
    later = fresh.server(client_ca=fresh.file)
    files = authority.server(client_ca=authority.file)
    old, new = trusting(authority, known=True), trusting(fresh, known=True)

    async def drive() -> None:
        async with balanced(0.01, tls=files, credentials=old) as before:
            assert await before.record() == "127.0.0.1"
            replace(later.certificate, files.certificate)
            before.balancer.tend(0.01, 1.0)
            assert await heard(before.port, old) == "OK"  # the key is another certificate's
            replace(later.key, files.key)
            replace(fresh.file, authority.file)
            before.balancer.tend(0.01, 1.0)
            assert await heard(before.port, new) == "OK"
            assert await heard(before.port, old) == "UNAVAILABLE"
            assert await before.record() == "127.0.0.1"  # its connection stands

    asyncio.run(drive())
    assert "stays in force" in caplog.text
    assert "the balancer keeps" not in caplog.text


@needs_haproxy
def test_renewed_files_are_told_again_where_nobody_answered(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balancer, "LOOK_SECONDS", 0.0)
    fresh = Authority(tmp_path / "fresh")
    later, files = fresh.server(), authority.server()

    async def drive() -> None:
        async with balanced(0.01, tls=files, credentials=trusting(authority)) as before:
            replace(later.certificate, files.certificate)
            replace(later.key, files.key)
            os.kill(before.balancer.pid, signal.SIGSTOP)
            before.balancer.tend(0.01, 1.0)
            os.kill(before.balancer.pid, signal.SIGCONT)
            before.balancer.tend(0.01, 1.0)
            assert await heard(before.port, trusting(fresh)) == "OK"

    asyncio.run(drive())


@needs_haproxy
def test_what_haproxy_does_not_take_is_said(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    files = authority.server()
    made = Certificates(files)
    replace(authority.pair("other", "localhost").certificate, files.certificate)
    replace(files.certificate.parent / "other.key", files.key)
    asked = list[str]()

    def ask(words: str) -> str:
        asked.append(words.split()[0])
        return "no such certificate"

    with caplog.at_level(logging.ERROR, "sluice.serving"):
        made.renew(ask)
        made.renew(ask)
    assert asked == ["set", "commit", "abort"]
    assert "the balancer keeps the certificate.pem that it had" in caplog.text


def test_files_that_do_not_fit_are_refused(authority: Authority) -> None:
    one, two = authority.pair("one", "localhost"), authority.pair("two", "localhost")
    with pytest.raises(ConfigError, match="TLS from"):
        Certificates(TlsFiles(certificate=one.certificate, key=two.key))


def replace(source: Path, target: Path) -> None:
    """At once, as a renewal does, with another time than before."""
    beside = target.with_suffix(".new")
    shutil.copyfile(source, beside)
    os.utime(beside, ns=(0, target.stat().st_mtime_ns + 1))
    beside.replace(target)
