"""Folders of Parquet partitioned by `day`, written so that a killed job leaves no half-written day.

Everything is first written aside, in the same parent folder; each day then takes its place by renames. A day that is
being replaced is absent for the instant between two renames, never half there.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from contracts.artifacts import DAY


def stage(frame: DataFrame, folder: Path) -> Path:
    """Writes the rows beside `folder` and answers where; rows of one day share files, large days are split."""
    staging = folder.with_name(f".{folder.name}.staging")
    shutil.rmtree(staging, ignore_errors=True)
    frame.hint("rebalance", DAY).write.partitionBy(DAY).parquet(str(staging))
    return staging


def publish(staging: Path, folder: Path, only: Sequence[str] | None = None) -> list[str]:
    """Moves staged days into `folder`; days of `only` (all days, when None) that were not staged are removed.

    Answers the days that were written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staged = {path.name for path in staging.glob(f"{DAY}=*")}
    present = {path.name for path in folder.glob(f"{DAY}=*")}
    replaced = present if only is None else present & {f"{DAY}={day}" for day in only}
    for name in sorted(staged):
        replace(staging / name, folder / name)
    for name in sorted(replaced - staged):
        shutil.rmtree(folder / name)
    shutil.rmtree(staging)
    return [name.removeprefix(f"{DAY}=") for name in sorted(staged)]


def write_days(frame: DataFrame, folder: Path, only: Sequence[str] | None = None) -> list[str]:
    """Replaces whole days: those of `only`, or the whole folder. The frame holds rows of these days alone."""
    return publish(stage(frame, folder), folder, only)


def replace(source: Path, target: Path) -> None:
    """Puts the folder `source` in the place of `target`, on one file system."""
    retired = target.with_name(f".{target.name}.old")
    shutil.rmtree(retired, ignore_errors=True)
    if target.exists():
        target.rename(retired)
    source.rename(target)
    shutil.rmtree(retired, ignore_errors=True)
