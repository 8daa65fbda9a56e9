"""`crosses.json`: the cross features that a search found, and how they become fields of a configuration.

OUT/crosses/crosses.json is written by `sluice crosses` and read by `sluice features`, which adds them to the configured
fields; from there on a found cross is a field like any other.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.atomic_write import aside
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import DataError

FILE = "crosses.json"


class FoundCross(BaseModel):
    """`importance` from the adjacency, `gain` in nats on the holdout given the crosses before, `support` in keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    parts: tuple[str, ...]
    importance: float
    gain: float
    support: int
    min_count: int = 1
    representation: Literal["embedding", "product"] = "embedding"

    @property
    def order(self) -> int:
        """Number of parts."""
        return len(self.parts)

    def field(self) -> FieldConfig:
        """The cross as a configured field would say it."""
        return FieldConfig(name=self.name, kind="cross", side="cross", parts=self.parts, min_count=self.min_count,
                           representation=self.representation)


class FoundCrosses(BaseModel):
    """The crosses, largest gain first, and the digest of what they were found in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    crosses: tuple[FoundCross, ...]

    def write(self, folder: Path) -> None:
        """Replaces the folder's file in one rename."""
        with aside(folder / FILE) as draft:
            draft.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def cross_name(parts: tuple[str, ...]) -> str:
    """age_band and price#10 -> age_band_x_price_10."""
    return "_x_".join(part.replace("#", "_") for part in parts)


def read(folder: Path) -> FoundCrosses | None:
    """None where no search has been. Raises DataError on a file that is not one of ours."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return FoundCrosses.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, json.JSONDecodeError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"{path} holds no found crosses ({first}); run `sluice crosses` again") from None


def add_found_crosses(config: Config, folder: Path, needed: Collection[str] | None = None) -> Config:
    """The configuration with the found crosses as further fields; unchanged where none are wanted or none were found.

    A found cross that a configured one already is, by its parts, is left out. Raises DataError when a part of one is no
    field any more; one that is not among the `needed`, where they are given, is left out with a warning.
    """
    found = read(folder) if config.crosses.budget else None
    if found is None:
        return config
    known = {frozenset(field.parts) for field in config.fields if field.kind == "cross"}
    crossed = config
    for cross in found.crosses:
        if frozenset(cross.parts) in known:
            continue
        more = crossed.model_copy(update={"fields": (*crossed.fields, cross.field())})
        problems = more.field_problems()
        if not problems:
            crossed = more
        elif needed is None or cross.name in needed:
            raise DataError(f"{folder / FILE} does not fit the fields any more: {problems[0]}; run `sluice features` "
                            "without --day, which leaves it out, then `sluice crosses`")
        else:
            logging.getLogger(__name__).warning(
                "a found cross is left out until `sluice crosses` searches again: %s", problems[0])
    return crossed
