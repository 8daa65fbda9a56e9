"""OUT/ingest/windows.json: which rows are for what, as resolved from the configuration.

    log with times       {window: [start, end]}, ISO 8601, UTC, in time order
    table without        {"seed", "shares": {window: share}, "test_rows"}
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.atomic_write import write_json
from contracts.errors import DataError

Span = tuple[datetime, datetime]


class TimedWindows(BaseModel):
    """`spans` are [start, end) in time order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spans: dict[str, Span]

    def plain(self) -> dict[str, Any]:
        """As the file has it: moments as ISO 8601 text."""
        return {name: [moment.isoformat() for moment in span] for name, span in self.spans.items()}

    def write(self, path: Path) -> None:
        write_json(path, self.plain())


class HashedShares(BaseModel):
    """`shares` add up to 1 and are in the order of the windows; `test_rows`: marked rows are the test window."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int
    shares: dict[str, float]
    test_rows: bool

    def plain(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def write(self, path: Path) -> None:
        write_json(path, self.plain())


def read(path: Path) -> TimedWindows | HashedShares | None:
    """Returns None where there is no such file. Raises DataError on one that holds no windows."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if "seed" in raw:
            return HashedShares.model_validate(raw)
        moment = datetime.fromisoformat
        return TimedWindows(spans={name: (moment(start), moment(end)) for name, (start, end) in raw.items()})
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"{path} holds no windows ({first}); run `sluice features` again") from None


def read_timed(path: Path) -> dict[str, Span]:
    """[start, end) of each window, in time order. Raises DataError without a file, or on one of hashed windows."""
    found = _known(path)
    if isinstance(found, HashedShares):
        raise DataError(f"{path} has windows by hash, of a table without times; run `sluice features` again")
    return found.spans


def read_hashed(path: Path) -> HashedShares:
    """Raises DataError without a file, or on one of a log with times."""
    found = _known(path)
    if isinstance(found, TimedWindows):
        raise DataError(f"{path} has no hashed windows, but those of a log with times; run `sluice features` again")
    return found


def _known(path: Path) -> TimedWindows | HashedShares:
    found = read(path)
    if found is None:
        raise DataError(f"no windows at {path}; run `sluice features` first")
    return found
