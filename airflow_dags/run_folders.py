"""The folders of past runs below the Variable sluice_runs: RUNS/DAY, RUNS/crosses/DAY, RUNS/federated/DAY."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

DAY = re.compile(r"(day=)?\d{4}-\d{2}-\d{2}")
CROSSES = Path("crosses") / "crosses.json"


def days(folder: Path) -> list[Path]:
    """Folders named by a day, oldest first."""
    return sorted(path for path in folder.glob("*") if path.is_dir() and DAY.fullmatch(path.name))


def newest_crosses(runs: Path, day: str) -> Path | None:
    """What the last search up to `day` found."""
    searches = [path / CROSSES for path in days(runs / "crosses") if path.name <= day and (path / CROSSES).exists()]
    return searches[-1] if searches else None


def take_crosses(runs: Path, day: str) -> str:
    """Copies them into the day's run, whole or not at all; returns where they are from."""
    newest, target = newest_crosses(runs, day), runs / day / CROSSES
    if newest is None:
        target.unlink(missing_ok=True)
        return "no search up to this day: no crosses"
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}")
    shutil.copyfile(newest, aside)
    aside.replace(target)
    return str(newest)


def remove_old(folder: Path, keep: int) -> list[str]:
    """Removes all but the newest `keep` days, each set aside first, so that half a folder is never read as a run.

    Returns the names of those removed."""
    old = days(folder)[:-keep]
    for path in old:
        aside = path.with_name(f".removed-{path.name}")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
    for aside in folder.glob(".removed-*"):
        shutil.rmtree(aside)
    return [path.name for path in old]
