"""What a server's doors cost a call: tokens of a file, JWTs, TLS, mutual TLS, in turns with a server without any.

    sluice bench doors BUNDLE [--calls 100] [--rounds 10] [--json]

A real `sluice serve` of one process for each kind of door, all of them up at once; each round asks each of them so many
times, one call after another on one channel. Processor time is the server's, of all its threads; `handshake_ms` is the
caller's time from nothing to the first answer, on a channel of its own. Medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import jwt
import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import BaseModel, ConfigDict

from benchmarks.hostile.outcome import worked
from serving.access.client_credentials import ClientCredentials
from serving.access.new_token import entry
from serving.bundle.feature_store import FeatureStore
from serving.server.client import RankingClient
from sluice.demo.server_process import ServerProcess

DOORS = ("none", "token", "jwt", "tls_token", "mutual_tls_jwt")
ISSUER, AUDIENCE, USERS, SECONDS = "https://login.example", "sluice", 200, 10.0


class DoorFigures(BaseModel):
    """Of one call."""

    model_config = ConfigDict(frozen=True)

    call_ms: float
    server_cpu_us: float
    handshake_ms: float


@dataclass
class House:
    """One server with one kind of door, and what opens it."""

    server: ServerProcess
    opened_by: ClientCredentials
    client: RankingClient
    milliseconds: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    handshakes: list[float] = field(default_factory=list)

    def ask(self, users: list[str], calls: int) -> None:
        """A round."""
        began, before = time.perf_counter(), worked(self.server.process.pid)
        for number in range(calls):
            self.client.rank(users[number % len(users)], seconds=SECONDS)
        self.milliseconds.append(1000 * (time.perf_counter() - began) / calls)
        self.cpu_us.append(1000 * (worked(self.server.process.pid) - before) / calls)
        began = time.perf_counter()
        with RankingClient(self.server.target, self.opened_by) as fresh:
            fresh.rank(users[0], seconds=SECONDS)
        self.handshakes.append(1000 * (time.perf_counter() - began))

    @property
    def figures(self) -> DoorFigures:
        return DoorFigures(
            call_ms=statistics.median(self.milliseconds), server_cpu_us=statistics.median(self.cpu_us),
            handshake_ms=statistics.median(self.handshakes))


class Keys:
    """An authority of certificates, an issuer of JWTs and an access file, below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._token = folder, secrets.token_urlsafe(32)
        self._authority, self._key = trustme.CA(), ec.generate_private_key(ec.SECP256R1())
        self._authority.cert_pem.write_to_path(folder / "ca.pem")
        for name, identity in (("server", "127.0.0.1"), ("caller", "caller@example.com")):
            pair = self._authority.issue_cert(identity)
            pair.private_key_pem.write_to_path(folder / f"{name}.key")
            pair.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        public = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / "issuer.pem").write_bytes(public)
        (folder / "access.toml").write_text(
            entry(self._token, "shop", ["ranking"], None) + '[jwt]\nkey_file = "issuer.pem"\nalgorithms = ["ES256"]\n'
            f'issuer = "{ISSUER}"\naudience = "{AUDIENCE}"\n')

    def options(self, door: str) -> tuple[str, ...]:
        """Of `sluice serve`."""
        file = {name: str(self._folder / name) for name in ("access.toml", "server.pem", "server.key", "ca.pem")}
        found: tuple[str, ...] = () if door == "none" else ("--access", file["access.toml"])
        if "tls" in door:
            found += ("--tls-certificate", file["server.pem"], "--tls-key", file["server.key"])
        return (*found, "--tls-client-ca", file["ca.pem"]) if "mutual" in door else found

    def credentials(self, door: str) -> ClientCredentials:
        """What opens it."""
        token = "" if door == "none" else self._jwt() if "jwt" in door else self._token
        if "tls" not in door:
            return ClientCredentials(token=token)
        own = (self._folder / "caller.pem", self._folder / "caller.key") if "mutual" in door else (None, None)
        return ClientCredentials(token=token, ca=self._folder / "ca.pem", certificate=own[0], key=own[1])

    def _jwt(self) -> str:
        return jwt.encode({"sub": "shop", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 86_400,
                           "roles": ["ranking"]}, self._key, algorithm="ES256")


@contextmanager
def house(bundle: Path, folder: Path, keys: Keys, door: str) -> Iterator[House]:
    """Up and asked once."""
    server = ServerProcess(bundle, folder / f"{door}.log", options=("--workers", "1", *keys.options(door)))
    try:
        shown = keys.credentials(door)
        with RankingClient(server.target, shown) as client:
            yield House(server, shown, client)
    finally:
        server.stop()


def measure(bundle: Path, calls: int, rounds: int) -> dict[str, DoorFigures]:
    users = FeatureStore.load(bundle / "tables", "users")
    names = [users.key(row) for row in range(min(USERS, len(users)))]
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        keys = Keys(Path(scratch))
        houses = {door: stack.enter_context(house(bundle, Path(scratch), keys, door)) for door in DOORS}
        for number in range(rounds):
            for door in DOORS if number % 2 else reversed(DOORS):
                houses[door].ask(names, calls)
        return {door: one.figures for door, one in houses.items()}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="sluice bench doors", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--calls", type=int, default=100, help="of a round, to each server")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    found = measure(given.bundle, given.calls, given.rounds)
    for door, one in found.items():
        print(f"{door:<15} {one.call_ms:7.2f} ms a call, {one.server_cpu_us:7.0f} us of the server's cores, first "
              f"answer after {one.handshake_ms:6.1f} ms")
    if given.json:
        print(json.dumps({door: one.model_dump() for door, one in found.items()}))


if __name__ == "__main__":
    main()
