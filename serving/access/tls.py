"""The server's certificate, and the authority whose clients' certificates it asks for, from PEM files.

Files are looked at again with every new connection, so that a renewed certificate needs no restart; while they do not
fit together, as in the middle of a renewal, the ones before stay in force.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import NamedTuple

import grpc

from contracts.config.section import Section
from contracts.errors import ConfigError

log = logging.getLogger("sluice.serving")


class TlsFiles(Section):
    """With `client_ca` (mutual TLS) a connection needs a certificate that this authority has signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.certificate, self.key, *([self.client_ca] if self.client_ca else []))


class Pem(NamedTuple):
    """What the files hold: the certificate with what leads to its root, its key, the clients' authority."""

    chain: bytes
    key: bytes
    client_ca: bytes | None


class WatchedPem:
    """`now` is what lay in the files at first. Raises ConfigError where they cannot be read, or certificate and key do
    not belong together."""

    def __init__(self, files: TlsFiles) -> None:
        self._files, self._mark = files, _mark(files)
        self.now = _read(files)

    def changed(self) -> Pem | None:
        """What has come into force since the last look, None for nothing; for any thread."""
        mark = _mark(self._files)
        if mark == self._mark:
            return None
        try:
            found = _read(self._files)
        except ConfigError as error:
            log.error("%s; the certificate before stays in force", error)
            return None
        self._mark = mark
        log.info("the certificate %s has changed and is in force", self._files.certificate)
        return found


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Raises what `WatchedPem` does."""
    watched = WatchedPem(files)

    def changed() -> grpc.ServerCertificateConfiguration | None:
        found = watched.changed()
        return None if found is None else _configuration(found)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(watched.now), changed, require_client_authentication=files.client_ca is not None)


def _configuration(pem: Pem) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.chain)], root_certificates=pem.client_ca)


def _read(files: TlsFiles) -> Pem:
    try:
        check = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        check.load_cert_chain(files.certificate, files.key, password=_no_password)
        if files.client_ca is not None:
            check.load_verify_locations(files.client_ca)
        return Pem(files.certificate.read_bytes(), files.key.read_bytes(),
                   files.client_ca.read_bytes() if files.client_ca else None)
    except (OSError, ssl.SSLError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"TLS from {', '.join(map(str, files.paths))}: {why}; give a certificate in PEM, its key "
                          "without a password, and the clients' authority") from None


def _no_password() -> str:
    """Instead of asking for one on the terminal."""
    raise ValueError("the key has a password")


def _mark(files: TlsFiles) -> tuple[int, ...]:
    try:
        found = [path.stat() for path in files.paths]
    except OSError:
        return ()
    return tuple(figure for one in found for figure in (one.st_mtime_ns, one.st_size, one.st_ino))
