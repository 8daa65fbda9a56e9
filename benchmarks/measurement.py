"""What a figure needs beside itself to go on record: when, on which machine, by which code and command it was measured.

`sluice bench` prints it as the first line of every benchmark.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
CPU_INFO = Path("/proc/cpuinfo")
COMMIT_DIGITS = 8


def described(command: Sequence[str]) -> str:
    """`command`, date and hour (UTC), code, machine and its load at this moment, in one line."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (f"{shlex.join(command)}  ({when}; {code(ROOT)}; {cores} cores of {processor(CPU_INFO)}, "
            f"load average {os.getloadavg()[0]:.1f})")


def code(folder: Path) -> str:
    """The commit of the checkout in `folder`, and whether files differ from it; the version where there is none, also
    within a checkout of something else."""
    if not (folder / ".git").exists():
        return f"version {version('sluice')}"
    try:
        said = [_git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain", "--untracked-files=no")]
    except (OSError, subprocess.CalledProcessError):
        return f"version {version('sluice')}"
    return f"commit {said[0][:COMMIT_DIGITS]}{' and changes' if said[1] else ''}"


def processor(cpu_info: Path) -> str:
    """As the system names it."""
    lines = cpu_info.read_text("utf-8").splitlines() if cpu_info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
