from __future__ import annotations

import base64
import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest

from contracts.errors import ConfigError
from serving.access.access_file import AccessFile, Algorithm, JwtIssuer, StaticToken
from serving.access.callers import LEEWAY, Caller, Callers, UnknownCaller
from serving.access.role import Role
from tests.serving.access.certificates import AUDIENCE, ISSUER, Issuer

ROLES = frozenset({Role.RANKING})
# Public keys of a curve that the library of cryptography does not have, and of one that signs nothing.
SECP112R1 = """-----BEGIN PUBLIC KEY-----
MDIwEAYHKoZIzj0CAQYFK4EEAAYDHgAEx+tioFoZRbtvpUnAzSqBYo3vGFTmZY7IxXQU4g==
-----END PUBLIC KEY-----"""
X25519 = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VuAyEAu+jiTEzUowPvmPm/6vLByZ7UboSg5oKcCJqOqS5DPnw=
-----END PUBLIC KEY-----"""
FAR = 4_102_444_800  # 2100, in seconds


def static(name: str, days: float | None = None) -> StaticToken:
    ends = None if days is None else datetime.now(UTC) + timedelta(days=days)
    mark = hashlib.sha256(f"{name}-secret".encode()).hexdigest()
    return StaticToken(name=name, sha256=mark, roles=ROLES, expires=ends)


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def callers(issuer: Issuer, tmp_path: Path) -> Callers:
    (tmp_path / "issuer.pem").write_bytes(issuer.public)
    settings = JwtIssuer(key_file=tmp_path / "issuer.pem", algorithms=("ES256",), issuer=ISSUER, audience=AUDIENCE)
    return Callers(AccessFile(tokens=(static("shop"), static("late", -1), static("young", 1)), jwt=settings))


def test_a_token_of_the_file_is_its_callers(callers: Callers) -> None:
    assert callers.of("shop-secret") == Caller("shop", ROLES)
    assert callers.of("young-secret").name == "young"


@pytest.mark.parametrize(("token", "said"), [
    ("", "not known"), ("shop-secre", "not known"), ("late-secret", "expired"), ("x" * 10_000, "longer than"),
    (hashlib.sha256(b"shop-secret").hexdigest(), "not known"), ("a.b.c", "not one of the issuer's"),
    ("\ud800", "not known"),
])
def test_no_other_is(callers: Callers, token: str, said: str) -> None:
    with pytest.raises(UnknownCaller, match=said) as caught:
        callers.of(token)
    assert len(token) < 5 or token not in str(caught.value)


def test_a_jwt_of_the_issuer_names_caller_and_roles(callers: Callers, issuer: Issuer) -> None:
    assert callers.of(issuer.token()) == Caller("shop", ROLES)
    assert callers.of(issuer.token(roles="catalogue other")).roles == {Role.CATALOGUE}
    assert callers.of(issuer.token(roles=["ranking", "administration", 3, "king"])).roles == {
        Role.RANKING, Role.ADMINISTRATION}
    assert callers.of(issuer.token(roles={"ranking": True})).roles == set()
    assert callers.of(issuer.token(sub="a\nb" * 100)).name.isprintable()
    assert callers.of(issuer.token(exp=str(FAR))).ends == FAR + LEEWAY  # some issuers write it as text


@pytest.mark.parametrize(("claims", "said"), [
    ({"ends": -60}, "expired"), ({"iss": "https://other"}, "not one"), ({"aud": "other"}, "not one"),
    ({"exp": None}, "not one"), ({"sub": None}, "not one"), ({"nbf": FAR}, "not one"),
    ({"iss": None}, "not one"), ({"aud": None}, "not one"), ({"exp": 10**400}, "not one"),
])
def test_a_jwt_is_checked(callers: Callers, issuer: Issuer, claims: dict[str, Any], said: str) -> None:
    with pytest.raises(UnknownCaller, match=said):
        callers.of(issuer.token(**claims))


def test_a_jwt_of_another_key_of_none_or_signed_with_the_public_key(callers: Callers, issuer: Issuer) -> None:
    header, claims, signature = issuer.token().split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).decode().rstrip("=")
    forged = base64.urlsafe_b64encode(json.dumps({"sub": "root", "exp": 2e9}).encode()).decode().rstrip("=")
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        shared = jwt.encode({"sub": "root", "iss": ISSUER, "aud": AUDIENCE, "exp": 2e9}, "x" * 8, algorithm="HS256")
    for token in (Issuer().token(), shared, f"{none}.{claims}.", f"{header}.{forged}.{signature}",
                  f"{none}.{claims}.{signature}"):
        with pytest.raises(UnknownCaller, match="not one of the issuer's"):
            callers.of(token)


def test_a_jwt_that_was_let_in_ends_as_well(callers: Callers, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    token = issuer.token(ends=60)
    assert callers.of(token).name == "shop"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 70)
    with pytest.raises(UnknownCaller, match="expired"):
        callers.of(token)


@pytest.mark.parametrize("algorithm", ["ES256", "ES512", "EdDSA", "RS256", "PS256"])
@pytest.mark.parametrize("key", ["no key", SECP112R1, X25519, "ecdsa-sha2-nistp999 AAAA"])
def test_a_key_of_another_kind_is_refused(tmp_path: Path, key: str, algorithm: Algorithm) -> None:
    (tmp_path / "key").write_text(key)
    settings = JwtIssuer(key_file=tmp_path / "key", algorithms=(algorithm,), issuer=ISSUER, audience=AUDIENCE)
    with pytest.raises(ConfigError, match=f"{tmp_path / 'key'} holds no key for {algorithm}"):
        Callers(AccessFile(jwt=settings))
