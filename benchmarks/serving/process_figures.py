"""What a server's processes use: memory and processor time, of a process and its children."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """The process, its children, and theirs."""
    found = [pid]
    for one in found:
        children = subprocess.run(["pgrep", "-P", str(one)], capture_output=True, text=True, check=False).stdout
        found += map(int, children.split())
    return found


def workers(pid: int, named: str = "") -> list[int]:
    """Those of a supervisor's family that serve, or will; of the bundle whose folder's name ends with `named`."""
    return [one for one in family(pid) if any(name.startswith("worker ") and name.strip().endswith(named[-8:])
                                              for name in _comm(one))]


def resident_megabytes(pid: int) -> int:
    """Mapped pages count for each process."""
    return sum(int(text.split()[1]) for text in _read(pid, "statm")) * PAGE // 2**20


def own_megabytes(pid: int) -> float:
    """What no other process has: neither mapped files nor libraries."""
    kilobytes = (int(line.split()[1]) for text in _read(pid, "smaps_rollup") for line in text.splitlines()
                 if line.startswith("Anonymous:"))
    return sum(kilobytes) / 1024


def cpu_seconds(pid: int) -> float:
    """Of all threads, since the processes began."""
    return sum(map(_ticks, _read(pid, "stat"))) / TICKS


def _comm(pid: int) -> list[str]:
    with suppress(OSError):
        return [Path(f"/proc/{pid}/comm").read_text()]
    return []


def _read(pid: int, name: str) -> Iterator[str]:
    """Of those of the family that are still there."""
    for one in family(pid):
        with suppress(OSError):
            yield Path(f"/proc/{one}/{name}").read_text()


def _ticks(stat: str) -> int:
    """User and system time; the name before them may hold blanks."""
    found = stat.rpartition(")")[2].split()
    return int(found[11]) + int(found[12])
