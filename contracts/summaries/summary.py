"""`summary.json`: what one job did, in figures, as a frozen record; gates, report, DAGs and tests read it back as one.

Each file of this room holds the records of one job. A figure that a job did not make is None and is left out of the
file, so that an older or shorter summary opens as well; a key that the record lacks is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts import metrics_file
from contracts.atomic_write import write_json
from contracts.errors import DataError

FILE = "summary.json"


class Record(BaseModel):
    """A frozen part of a summary: unknown keys are refused, numbers are finite when written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def plain(self) -> dict[str, object]:
        """As JSON has it: no None, times as text."""
        return self.model_dump(mode="json", exclude_none=True)


class Summary(Record):
    """The whole of one job's `summary.json`."""


Kind = TypeVar("Kind", bound=Summary)


def write(folder: Path, summary: Summary) -> None:
    """Replaces the folder's summary in one rename, and its figures for Prometheus besides. Raises ValueError for a
    figure that is not finite."""
    write_json(folder / FILE, summary.plain())
    metrics_file.write(folder, summary.plain())


def read(folder: Path, kind: type[Kind]) -> Kind | None:
    """Returns None where the folder has no summary. Raises DataError naming the file and the key where it is another
    record's, or damaged."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return kind.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path} is no {kind.__name__}: {where}: {first['msg']}; run the job again") from None
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}; run the job again") from None


def kept(folder: Path, kind: type[Kind]) -> Kind | None:
    """As `read`, for the job that writes the summary itself: what it cannot read is as good as none, and made again."""
    try:
        return read(folder, kind)
    except DataError:
        return None


def required(folder: Path, kind: type[Kind], command: str) -> Kind:
    """Raises DataError that names the command to run first where the folder has no summary."""
    found = read(folder, kind)
    if found is None:
        raise DataError(f"{folder / FILE} is missing; run `{command}` first")
    return found
