"""Where a server listens and whom it lets in, as told by its command; paths alone, no secret."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

from contracts.config.section import Section
from contracts.errors import ConfigError
from serving.access.tls import TlsFiles


class Doors(Section):
    """`access` is the access file (serving/access/access_file.py), None lets everybody call; `reflection` None is on
    where the server listens on loopback alone."""

    tls: TlsFiles | None = None
    access: Path | None = None
    reflection: bool | None = None

    def reflects(self, host: str) -> bool:
        return is_loopback(host) if self.reflection is None else self.reflection


NO_DOORS = Doors()


def is_loopback(host: str) -> bool:
    """Can nobody but this machine reach it? A name other than localhost may be anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str, option: str) -> None:
    """Raises ConfigError where no process of this machine can listen on it."""
    why = "it is empty" if not host else ""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError) as error:  # of a name that IDNA does not have
        found, why = [], getattr(error, "strerror", None) or "it is no name of a host"
    for family, kind, protocol, _, place in found:
        try:
            with socket.socket(family, kind, protocol) as tried:
                tried.bind(place)
            return
        except OSError as error:
            why = str(error.strerror)
    raise ConfigError(f"{option} {host!r} is no address of this machine ({why}); give 127.0.0.1 for callers of this "
                      "machine alone, 0.0.0.0 for all, or one of its own, without a port")


def address(host: str, port: int) -> str:
    """HOST:PORT, [HOST]:PORT for IPv6."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def warnings(host: str, doors: Doors) -> list[str]:
    """What an operator should hear at the start; nothing on loopback."""
    if is_loopback(host):
        return []
    found = []
    if doors.tls is None:
        found.append(f"LISTENING ON {host} WITHOUT TLS: requests, answers and tokens can be read and changed on the "
                     "way; give --tls-certificate and --tls-key, or listen on loopback behind a proxy")
    if doors.access is None and (doors.tls is None or doors.tls.client_ca is None):
        found.append(f"LISTENING ON {host} FOR EVERYBODY: no token is asked for; give --access, or --tls-client-ca")
    return found
