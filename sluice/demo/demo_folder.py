"""A demo's output folder: emptied where a demo made it, refused where it holds anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

from contracts.errors import DataError
from sluice.out_folder import one_writer

MARK = ".sluice-demo"


def clear(out: Path) -> None:
    """Removes an earlier demo's output. Refuses a folder with anything in it that no demo has marked as its own; who
    writes there stays noted."""
    left = [path for path in out.iterdir() if path.name != one_writer.FILE] if out.exists() else []
    if left and not (out / MARK).exists():
        raise DataError(f"{out} is not empty and no demo made it; give another folder with --out")
    for path in left:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()
