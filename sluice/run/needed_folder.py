"""A folder that another job has to leave before this one can start."""

from __future__ import annotations

from pathlib import Path

from contracts.errors import DataError


def need(folder: Path, command: str) -> None:
    """Raises DataError that names the command to run first."""
    if not folder.exists():
        raise DataError(f"{folder} is missing; run `{command}` with the same --out first")
