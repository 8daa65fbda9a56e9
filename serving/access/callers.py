"""Token -> who calls: one of the access file's, by its hash, or a JWT of its issuer (PyJWT, RFC 7519).

A JWT is checked for signature, issuer, audience, exp (required) and nbf, with LEEWAY seconds for clocks that differ.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from contracts.errors import ConfigError, SluiceError
from contracts.shown import short
from serving.access.access_file import AccessFile, JwtIssuer, read_key
from serving.access.role import Role

LEEWAY = 5.0
LONGEST = 8192  # characters of a token; gRPC takes no more metadata anyway
MOST_KEPT = 1024  # JWTs whose signatures are not checked again


class UnknownCaller(SluiceError):
    """No token, or none that is taken; the message tells the caller which, and nothing of the token."""


@dataclass(frozen=True)
class Caller:
    """`ends` in seconds since 1970."""

    name: str
    roles: frozenset[Role]
    ends: float = field(default=float("inf"), compare=False)


class Callers:
    """Of one reading of the access file. Raises ConfigError where the issuer's key cannot be used."""

    def __init__(self, file: AccessFile) -> None:
        self._known = {token.sha256: Caller(token.name, token.roles, token.ends) for token in file.tokens}
        self._issuer = None if file.jwt is None else _Issuer(file.jwt)
        self._checked: dict[str, Caller] = {}

    def of(self, token: str) -> Caller:
        """Raises UnknownCaller."""
        if len(token) > LONGEST:
            raise UnknownCaller(f"the token is longer than {LONGEST} characters")
        mark = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        found = self._known.get(mark) or self._checked.get(mark) or self._signed(token, mark)
        if found.ends <= time.time():
            raise UnknownCaller("the token has expired; get a new one")
        return found

    def _signed(self, token: str, mark: str) -> Caller:
        if self._issuer is None or token.count(".") != 2:
            raise UnknownCaller("the token is not known")
        caller = self._issuer.caller(token)
        if len(self._checked) >= MOST_KEPT:
            self._checked.clear()
        self._checked[mark] = caller
        return caller


class _Issuer:
    def __init__(self, issuer: JwtIssuer) -> None:
        try:
            import jwt
            from cryptography.exceptions import UnsupportedAlgorithm
        except ImportError:
            raise ConfigError("JWTs are checked by PyJWT; install the extra `serving`") from None
        self._jwt, self._settings = jwt, issuer
        try:
            algorithm = jwt.get_algorithm_by_name(issuer.algorithms[0])
            self._key = algorithm.prepare_key(read_key(issuer))
        except (jwt.PyJWTError, UnsupportedAlgorithm, ValueError, TypeError):
            raise ConfigError(f"jwt.key_file {issuer.key_file} holds no key for {issuer.algorithms[0]}; give the "
                              "issuer's public key in PEM") from None

    def caller(self, token: str) -> Caller:
        settings = self._settings
        try:
            claims = self._jwt.decode(
                token, self._key, algorithms=list(settings.algorithms), issuer=settings.issuer,
                audience=settings.audience, leeway=LEEWAY, options={"require": ["exp", "sub"]})
            ends = float(claims["exp"]) + LEEWAY
        except self._jwt.ExpiredSignatureError:
            raise UnknownCaller("the token has expired; get a new one") from None
        except (self._jwt.PyJWTError, ValueError, TypeError, OverflowError):
            raise UnknownCaller("the token is not one of the issuer's for this server") from None
        return Caller(short(str(claims["sub"])), _roles(claims.get(settings.roles_claim)), ends)


def _roles(claim: Any) -> frozenset[Role]:
    """Words that are no roles are other services'."""
    words = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else ()
    return frozenset(Role(word) for word in words if isinstance(word, str) and word in set(Role))
