"""A day's users as they lie in a store: one version, switched as a whole. In a Redis or Valkey:

    sluice:users:current            JSON of the Version that is read
    sluice:users:draft              JSON of the Version that is being written
    sluice:users:NAME:BUCKET        a hash, user -> JSON of a row; BUCKET = CRC-32 of the user modulo `buckets`

Buckets bound what is renamed, expired or freed at once; a user is one HGET. In a folder of the host: see
serving/users/embedded_tables.py.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from contracts.errors import DataError
from contracts.features.event_features import NOTHING_TOLD, ToldEvents
from contracts.shown import short

CURRENT, DRAFT, LOCK = "sluice:users:current", "sluice:users:draft", "sluice:users:publishing"
FORMAT = 1
ROWS_OF_A_BUCKET = 1_000
LARGEST_ROW = 1 << 20  # bytes: ten milliseconds of whoever reads it


Rows = list[tuple[bytes, str]]  # users and their rows, as `write_row` writes them


class Version(BaseModel):
    """`published` is the moment as of which the rows know their users."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    name: str
    buckets: int = Field(ge=1)
    rows: int = Field(ge=0)
    published: AwareDatetime

    def bucket(self, user: bytes) -> str:
        """The hash that holds the user's row."""
        return self._key(zlib.crc32(user) % self.buckets)

    def hashes(self) -> list[str]:
        """Of all hashes."""
        return [self._key(place) for place in range(self.buckets)]

    def _key(self, place: int) -> str:
        return f"sluice:users:{self.name}:{place}"


class UserRow(NamedTuple):
    """Raw `values` by field, None where one is missing, and the items clicked last, newest first, with what is told of
    them."""

    values: Mapping[str, Any]
    recent: Sequence[str]
    told: ToldEvents = NOTHING_TOLD


def key_of(user: str) -> bytes:
    return user.encode("utf-8", "replace")


def read_version(told: bytes) -> Version:
    """Raises DataError where another release has written it."""
    try:
        found = Version.model_validate_json(told)
    except ValidationError as error:
        raise DataError(f"the store's tables of users cannot be read ({error.errors()[0]['msg']}); publish them "
                        "again") from None
    if found.format != FORMAT:
        raise DataError(f"the store's tables of users are of format {found.format}, this release reads {FORMAT}; "
                        "publish them with the release that serves")
    return found


def check_order(before: Version | None, version: Version) -> None:
    """Raises DataError where the version before knows its users as of a later moment."""
    if before is not None and before.published > version.published:
        raise DataError(f"the store has users as of {before.published:%Y-%m-%d %H:%M:%S} UTC, later than those to "
                        f"publish, {version.published:%Y-%m-%d %H:%M:%S}: publish a later run, or give --older to go "
                        "back")


def write_row(row: UserRow) -> str:
    """Raises DataError for a value that JSON has no word for."""
    values = {name: _known(value) for name, value in row.values.items()}
    try:
        told = {"times": list(row.told.times), "columns": dict(row.told.columns)} if any(row.told) else None
        return json.dumps({"values": values, "recent": list(row.recent), **({"told": told} if told else {})},
                          ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_number)
    except (TypeError, ValueError) as error:
        raise DataError(f"a row of the online table of users cannot be published ({short(str(error))})") from None


def read_row(told: bytes) -> UserRow:
    """Raises DataError where it is no row, or more than LARGEST_ROW."""
    if len(told) > LARGEST_ROW:
        raise DataError(f"a row of the store has {len(told)} bytes, at most {LARGEST_ROW} are read; publish shorter "
                        "lists")
    try:
        found = json.loads(told)
        return UserRow(dict(found["values"]), [str(item) for item in found["recent"]], _told(found.get("told")))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"a row of the store cannot be read ({short(str(error))})") from None


def _told(found: Any) -> ToldEvents:
    if found is None:
        return NOTHING_TOLD
    columns = {str(name): [None if value is None else str(value) for value in values]
               for name, values in found["columns"].items()}
    return ToldEvents([int(at) for at in found["times"]], columns)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _number(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"a {type(value).__name__} is no number, text, flag or list of them")
