"""The server's certificate, and the authority whose clients' certificates it asks for, from PEM files.

Files are looked at again with every new connection, so that a renewed certificate needs no restart; while they do not
fit together, as in the middle of a renewal, the ones before stay in force.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

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


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Raises ConfigError where the files cannot be read, or certificate and key do not belong together."""
    watched = _Watched(files)
    return grpc.dynamic_ssl_server_credentials(
        watched.first, watched.changed, require_client_authentication=files.client_ca is not None)


class _Watched:
    def __init__(self, files: TlsFiles) -> None:
        self._files, self._mark = files, _mark(files)
        self.first = _configuration(files)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """None as long as nothing has; called by gRPC, in any thread."""
        mark = _mark(self._files)
        if mark == self._mark:
            return None
        try:
            found = _configuration(self._files)
        except ConfigError as error:
            log.error("%s; the certificate before stays in force", error)
            return None
        self._mark = mark
        log.info("the certificate %s has changed and is in force", self._files.certificate)
        return found


def _configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    try:
        check = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        check.load_cert_chain(files.certificate, files.key, password=_no_password)
        if files.client_ca is not None:
            check.load_verify_locations(files.client_ca)
        chain, key = files.certificate.read_bytes(), files.key.read_bytes()
        roots = files.client_ca.read_bytes() if files.client_ca else None
    except (OSError, ssl.SSLError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"TLS from {', '.join(map(str, files.paths))}: {why}; give a certificate in PEM, its key "
                          "without a password, and the clients' authority") from None
    return grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=roots)


def _no_password() -> str:
    """Instead of asking for one on the terminal."""
    raise ValueError("the key has a password")


def _mark(files: TlsFiles) -> tuple[int, ...]:
    try:
        found = [path.stat() for path in files.paths]
    except OSError:
        return ()
    return tuple(figure for one in found for figure in (one.st_mtime_ns, one.st_size, one.st_ino))
