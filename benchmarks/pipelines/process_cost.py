"""What a process and its children cost: seconds, CPU seconds, peak of memory, peak of temporary files."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PAGE_BYTES, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
EVERY = 0.25


class Cost(NamedTuple):
    """`spilled_mib`: the most that lay in the folder of temporary files at a time, shuffles among them."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    spilled_mib: float


def cost_of(command: Sequence[str], environment: Mapping[str, str], scratch: Path) -> Cost:
    """Runs it to its end, sampled four times a second. Raises RuntimeError, with what it said, where it fails."""
    started = time.perf_counter()
    log = scratch / "said.txt"
    with log.open("wb") as said:
        process = subprocess.Popen(command, env=dict(environment), stdout=said, stderr=said)
    peak, spilled, spent_by = 0, 0, dict[int, float]()
    while process.poll() is None:
        alive = family(process.pid)
        peak = max(peak, sum(map(resident, alive)))
        spilled = max(spilled, bytes_below(scratch))
        spent_by |= {pid: max(spent_by.get(pid, 0.0), cpu_seconds(pid)) for pid in alive}
        time.sleep(EVERY)
    spent = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {log.read_text(errors='replace')[-500:]}")
    return Cost(spent, sum(spent_by.values()), peak / 2**20, spilled / 2**20)


def family(pid: int) -> list[int]:
    """The process and all its descendants that are still there."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, task.read_text(encoding="utf-8").split())
            except OSError:
                continue
    return found


def resident(pid: int) -> int:
    """Bytes in memory; 0 of a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads so far; 0 of a process that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def bytes_below(folder: Path) -> int:
    """Of all files there; one that goes while it is counted counts 0."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total
