"""What a client shows and checks: the server's authority, its own certificate, its token."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from contracts.errors import ConfigError
from serving.access.doors import is_loopback
from serving.access.gate import AUTHORIZATION

TOKEN = "SLUICE_TOKEN"


@dataclass(frozen=True, kw_only=True)
class ClientCredentials:
    """`ca` is the authority that signed the server's certificate: with it, or with `tls`, which trusts those of gRPC,
    the channel is TLS. `certificate` and `key` are for mutual TLS.

    Raises ConfigError where one of those two is missing.
    """

    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("a client's certificate and its key go together; give both, or neither")

    @property
    def secure(self) -> bool:
        return self.tls or self.ca is not None or self.certificate is not None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Of every call."""
        return ((AUTHORIZATION, f"Bearer {self.token}"),) if self.token else ()

    def check(self, target: str) -> None:
        """Of addresses HOST:PORT, divided by commas. Raises ConfigError where a token would go in plain text to another
        machine."""
        for one in target.removeprefix("ipv4:").split(","):
            if not self.secure and self.token and not is_loopback(one.rpartition(":")[0]):
                raise ConfigError(f"a token would go to {one} in plain text; give the server's authority (--tls-ca)")

    def channel(self, target: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.Channel:
        """Raises ConfigError where a file cannot be read, and what `check` raises."""
        self.check(target)
        if not self.secure:
            return grpc.insecure_channel(target, options=options)
        return grpc.secure_channel(target, self.of_channel(), options=options)

    def of_channel(self) -> grpc.ChannelCredentials:
        """Raises ConfigError where a file cannot be read."""
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self.ca), private_key=_read(self.key), certificate_chain=_read(self.certificate))


def _read(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None


def token_of(environment: Mapping[str, str] = os.environ, file: Path | None = None) -> str:
    """From a file, or from SLUICE_TOKEN; "" where there is none. Raises ConfigError."""
    if file is None:
        return environment.get(TOKEN, "").strip()
    found = (_read(file) or b"").decode("ascii", "replace").strip()
    if not found:
        raise ConfigError(f"the token file {file} is empty")
    return found
