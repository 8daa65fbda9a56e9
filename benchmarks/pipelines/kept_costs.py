"""Runs of a benchmark, a line of JSON each, so that one too long for a sitting is measured in pieces.

A run is kept as soon as it has ended, with what it was of: engine, events, commit. Runs of several commits are no one
measurement and are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from benchmarks.pipelines.process_cost import Cost
from contracts.commit import present_commit
from contracts.errors import DataError
from contracts.summaries.summary import Record

FILE = "runs.jsonl"


class KeptCost(Record):
    """`commit`: of the platform, None outside a checkout."""

    engine: str
    events: int
    commit: str | None
    seconds: float
    cpu_seconds: float
    peak_mib: float
    spilled_mib: float

    @property
    def cost(self) -> Cost:
        return Cost(self.seconds, self.cpu_seconds, self.peak_mib, self.spilled_mib)


def keep(folder: Path, engine: str, events: int, cost: Cost) -> None:
    """Adds a line to FOLDER/runs.jsonl."""
    made = KeptCost(engine=engine, events=events, commit=present_commit(), **cost._asdict())
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(made.model_dump_json() + "\n")


def kept(folder: Path) -> dict[str, dict[int, list[Cost]]]:
    """Engine -> events, in ascending order -> runs, as they were kept; nothing where there is no file.

    Raises DataError on a line that is none of these, and on runs of several commits.
    """
    path = folder / FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    try:
        found = [KeptCost.model_validate(json.loads(line)) for line in lines]
    except (ValueError, ValidationError) as error:
        raise DataError(f"{path} holds a line that is no run ({str(error).splitlines()[0]}); remove it") from None
    commits = {run.commit for run in found}
    if len(commits) > 1:
        raise DataError(f"{path} holds runs of several commits ({', '.join(sorted(map(str, commits)))}), which are no "
                        "one measurement; begin in another --out")
    return _by_engine(found)


def _by_engine(found: Iterable[KeptCost]) -> dict[str, dict[int, list[Cost]]]:
    costs: dict[str, dict[int, list[Cost]]] = {}
    for run in sorted(found, key=lambda run: run.events):
        costs.setdefault(run.engine, {}).setdefault(run.events, []).append(run.cost)
    return costs
