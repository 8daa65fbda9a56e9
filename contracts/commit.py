"""Which commit of the code runs."""

from __future__ import annotations

import subprocess
from pathlib import Path


def present_commit(digits: int = 40) -> str | None:
    """The commit's first digits, with "-dirty" behind them where files were changed; None outside a repository."""
    where = str(Path(__file__).parent)
    command = ["git", "-C", where, "describe", "--always", "--dirty", f"--abbrev={digits}", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
