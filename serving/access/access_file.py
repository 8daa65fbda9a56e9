"""Who may call: a TOML file of tokens, known by their hashes, and of the issuer whose JWTs are taken.

    [[tokens]]
    name = "shop"                         # as logs and turns in the queue name the caller
    sha256 = "9f86d081884c7d65..."        # of the token, in hexadecimal; the token itself is in no file of the server
    roles = ["ranking"]                   # of serving/access/role.py
    expires = 2027-01-01T00:00:00Z        # never, where left out

    [jwt]
    key_file = "issuer.pem"               # its public key, beside this file; of HS256 and its like the shared secret
    algorithms = ["ES256"]
    issuer = "https://login.example.com"
    audience = "sluice"
    roles_claim = "roles"                 # a list, or words with spaces between
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from contracts.config.section import Instant, Section
from contracts.errors import ConfigError
from serving.access.role import Role

Hash = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Algorithm = Literal["ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512", "HS256",
                    "HS384", "HS512"]
LONGEST_NAME = 80  # characters
SHORTEST_SECRET = 32  # bytes, of HS256 and its like


class StaticToken(Section):
    """One caller's token, by its hash."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    sha256: Hash
    roles: frozenset[Role] = Field(min_length=1)
    expires: Instant | None = None

    @property
    def ends(self) -> float:
        """Seconds since 1970."""
        return float("inf") if self.expires is None else self.expires.timestamp()


class JwtIssuer(Section):
    """Whose JWTs are taken; `key_file` is found from the access file's folder."""

    key_file: Path
    algorithms: tuple[Algorithm, ...] = Field(min_length=1)
    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    roles_claim: str = "roles"

    @model_validator(mode="after")
    def _one_family(self) -> JwtIssuer:
        shared = {name.startswith("HS") for name in self.algorithms}
        if len(shared) > 1:
            raise ValueError(f"jwt.algorithms {list(self.algorithms)} mix a shared secret (HS...) with a public key, "
                             "so that who has the public key could sign; keep to one of both")
        return self


class AccessFile(Section):
    """Of an access file."""

    tokens: tuple[StaticToken, ...] = ()
    jwt: JwtIssuer | None = None

    @model_validator(mode="after")
    def _someone(self) -> AccessFile:
        if not self.tokens and self.jwt is None:
            raise ValueError("names no [[tokens]] and no [jwt], so that nobody could call")
        hashes = [token.sha256 for token in self.tokens]
        twice = next((token.name for token in self.tokens if hashes.count(token.sha256) > 1), None)
        if twice is not None:
            raise ValueError(f"the token of {twice!r} is there twice; give every caller one of its own")
        return self


def read(path: Path) -> AccessFile:
    """Raises ConfigError, which shows nothing of what the file holds but names."""
    try:
        found = AccessFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        why = f"the access file {path} cannot be read ({error.strerror}); give --access another one"
        raise ConfigError(why) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the access file {path} is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"the access file {path}: {where}{': ' if where else ''}{first['msg']}") from None
    if found.jwt is None:
        return found
    key = path.parent / found.jwt.key_file
    return found.model_copy(update={"jwt": found.jwt.model_copy(update={"key_file": key})})


def read_key(issuer: JwtIssuer) -> bytes:
    """Raises ConfigError."""
    try:
        key = issuer.key_file.read_bytes()
    except OSError as error:
        raise ConfigError(f"jwt.key_file {issuer.key_file} cannot be read ({error.strerror})") from None
    if issuer.algorithms[0].startswith("HS"):
        key = key.strip()
        if len(key) < SHORTEST_SECRET:
            raise ConfigError(f"jwt.key_file {issuer.key_file} holds {len(key)} bytes, a shared secret needs "
                              f"{SHORTEST_SECRET} and more; make one, as with `openssl rand -hex 32`")
    return key
