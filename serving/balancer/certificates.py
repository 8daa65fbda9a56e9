"""The balancer's end of TLS: HAProxy reads the server's own files at its start, and is told what they hold anew.

A renewed certificate goes over HAProxy's socket, so that no connection is lost; the key is nowhere else than where it
was. https://docs.haproxy.org/2.6/management.html, `set ssl cert`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from serving.access.tls import Pem, TlsFiles, WatchedPem

CERTIFICATE, CLIENT_CA = "certificate.pem", "callers.pem"
KEY = f"{CERTIFICATE}.key"  # where HAProxy looks for the key of a certificate that has none beside it
DONE = "Success"
log = logging.getLogger("sluice.serving")


def bound(files: TlsFiles | None) -> str:
    """What HAProxy is told of the port, "" for plain text."""
    if files is None:
        return ""
    return f" ssl crt {CERTIFICATE} alpn h2" + f" ca-file {CLIENT_CA} verify required" * (files.client_ca is not None)


class Certificates:
    """Raises ConfigError where the files do not fit together."""

    def __init__(self, files: TlsFiles) -> None:
        self._files, self._watched = files, WatchedPem(files)
        self._untold: Pem | None = None

    def link(self, folder: Path) -> None:
        """To where HAProxy looks for them."""
        for name, path in ((CERTIFICATE, self._files.certificate), (KEY, self._files.key),
                           (CLIENT_CA, self._files.client_ca)):
            if path is not None:
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(path.absolute())

    def renew(self, ask: Callable[[str], str]) -> None:
        """Tells HAProxy what has changed; what it does not take is a line of the log. Raises OSError where nobody
        answers, and tells it the next time."""
        found = self._untold = self._watched.changed() or self._untold
        if found is None:
            return
        _put(ask, "cert", CERTIFICATE, found.chain + b"\n" + found.key)
        if found.client_ca is not None:
            _put(ask, "ca-file", CLIENT_CA, found.client_ca)
        self._untold = None


def _put(ask: Callable[[str], str], kind: str, name: str, content: bytes) -> None:
    """An empty line would end it, and HAProxy reads 16 KiB of words at most."""
    lines = [line for line in content.decode(errors="replace").splitlines() if line.strip()]
    said = ask(f"set ssl {kind} {name} <<\n" + "\n".join(lines) + "\n")
    done = ask(f"commit ssl {kind} {name}")
    if DONE not in done:
        ask(f"abort ssl {kind} {name}")
        log.error("the balancer keeps the %s that it had, until the server is started anew: %s", name,
                  " ".join(f"{said} {done}".split()))
