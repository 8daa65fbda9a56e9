"""Certificates that do not fit are refused at the start, and left out later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from contracts.errors import ConfigError
from serving.access.tls import TlsFiles, server_credentials
from tests.serving.access.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def test_what_fits_is_taken(authority: Authority) -> None:
    assert server_credentials(authority.server())
    assert server_credentials(authority.server(client_ca=authority.file))


@pytest.mark.parametrize("part", ["certificate", "key", "client_ca"])
@pytest.mark.parametrize("content", [None, b"", b"no PEM"])
def test_what_cannot_be_used_is_named(authority: Authority, tmp_path: Path, part: str, content: bytes | None) -> None:
    path = tmp_path / f"{part}.pem"
    if content is not None:
        path.write_bytes(content)
    files = authority.server(client_ca=authority.file).model_copy(update={part: path})
    with pytest.raises(ConfigError, match=os.path.basename(path)):
        server_credentials(files)


def test_another_certificates_key_is_refused_and_no_password_asked_for(authority: Authority, tmp_path: Path) -> None:
    one, two = authority.pair("one", "localhost"), authority.pair("two", "localhost")
    with pytest.raises(ConfigError, match="TLS from"):
        server_credentials(TlsFiles(certificate=one.certificate, key=two.key))
    plain = load_pem_private_key(one.key.read_bytes(), None)
    (tmp_path / "locked").write_bytes(plain.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")))
    with pytest.raises(ConfigError, match="TLS from"):
        server_credentials(TlsFiles(certificate=one.certificate, key=tmp_path / "locked"))
