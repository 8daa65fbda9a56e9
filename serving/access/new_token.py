"""A random token, and the lines by which an access file knows it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from contracts.errors import ConfigError
from serving.access.access_file import LONGEST_NAME
from serving.access.role import Role

BYTES = 32
CONTROL = ("Cc", "Cs")  # categories of Unicode: control characters, halves of surrogate pairs


def make() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(BYTES)


def write(made: str, file: Path) -> None:
    """Into a file that only its owner may read. Raises ConfigError where one lies there already."""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(f"{made}\n")
    except OSError as error:
        raise ConfigError(f"no token is written to {file} ({error.strerror}); give --file a new file") from None


def entry(made: str, name: str, roles: Sequence[str], expires: datetime | None) -> str:
    """TOML; of the token its hash alone. Raises ConfigError for a role that there is not, and for a name or an end that
    an access file does not take."""
    _check(name)
    wrong = next((role for role in roles if role not in set(Role)), None)
    if wrong is not None:
        raise ConfigError(f"there is no role {wrong!r}; there are {', '.join(Role)}")
    lines = ["[[tokens]]", f"name = {_in_ascii(name)}",
             f'sha256 = "{hashlib.sha256(made.encode()).hexdigest()}"', f"roles = {json.dumps(list(roles))}"]
    return "\n".join(lines + ([f"expires = {_in_utc(expires)}"] if expires else [])) + "\n"


def _in_utc(expires: datetime) -> str:
    try:
        moment = expires.astimezone(UTC)
    except OverflowError:
        raise ConfigError(f"the token's end {expires.isoformat()} lies in no year of UTC; give an earlier or a later "
                          "one") from None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")  # strftime writes years of less than 4 digits


def _in_ascii(name: str) -> str:
    """As TOML, whatever the encoding of where it is printed; JSON writes what lies beyond U+FFFF in two parts."""
    written = (f"\\U{ord(one):08X}" if ord(one) > 0xFFFF else json.dumps(one)[1:-1] for one in name)
    return f'"{"".join(written)}"'


def _check(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME:
        raise ConfigError(f"the token's NAME has {len(name)} characters, an access file takes 1 to {LONGEST_NAME}; "
                          "give another one")
    wrong = next((one for one in name if unicodedata.category(one) in CONTROL), None)
    if wrong is not None:
        raise ConfigError(f"the token's NAME {name!r} holds the control character {wrong!r}, which is none of a name; "
                          "leave it out")
