"""Certificates for one test run, made by trustme, and JWTs signed by a key of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from serving.access.tls import TlsFiles

ISSUER, AUDIENCE = "https://login.example", "sluice"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates and leaves them below `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ca, self._folder, self.file = trustme.CA(), folder, folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def pair(self, name: str, *identities: str) -> Pair:
        made, pair = self._ca.issue_cert(*identities), Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        made.private_key_pem.write_to_path(pair.key)
        made.cert_chain_pems[0].write_to_path(pair.certificate)
        return pair

    def server(self, name: str = "server", client_ca: Path | None = None) -> TlsFiles:
        made = self.pair(name, "127.0.0.1", "localhost", "::1")
        return TlsFiles(certificate=made.certificate, key=made.key, client_ca=client_ca)


class Issuer:
    """Signs JWTs with ES256; `public` is its key's PEM."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.public = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def token(self, ends: float = 3600.0, **claims: Any) -> str:
        """`ends` in seconds from now; claims of None are left out."""
        said = {"sub": "shop", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time() + ends), "roles": ["ranking"]}
        whole = {name: value for name, value in (said | claims).items() if value is not None}
        return jwt.encode(whole, self._key, algorithm="ES256")
