"""Which jobs torchrun may start several times: training alone, which `start_several` does; and who of several speaks
and writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from contracts.errors import ConfigError

RESTARTS = 3  # of all processes when one dies


def start_several(workers: int, arguments: Sequence[str]) -> None:
    """Goes on as torchrun with so many processes of `sluice` with these arguments; returns in each of them, and where
    one process is enough."""
    if workers == 1 or "WORLD_SIZE" in os.environ:
        return
    sys.stdout.flush()
    os.execv(sys.executable, [
        sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}",
        f"--max-restarts={RESTARTS}", "-m", "sluice.cli", *arguments])


def refuse_several(job: str) -> None:
    """Raises ConfigError where torchrun started this in more than one process: all would write the same files."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count > 1:
        raise ConfigError(f"`sluice {job}` runs in one process and torchrun started {count}; start it without torchrun "
                          "(`sluice train` alone runs under it)")


def is_first() -> bool:
    """Whether this process is the only one, or torchrun's first."""
    return os.environ.get("RANK", "0") == "0"
