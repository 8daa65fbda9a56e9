"""A demo's output folder: emptied where a demo made it, refused where it holds anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

from contracts.errors import DataError

MARK = ".sluice-demo"


def clear(out: Path) -> None:
    """Removes an earlier demo's output. Refuses a folder with anything in it that no demo has marked as its own."""
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise DataError(f"{out} is not empty and no demo made it; give another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()
