"""Which jobs torchrun may start several times: training alone; and who of several speaks and writes."""

from __future__ import annotations

import os

from contracts.errors import ConfigError


def refuse_several(job: str) -> None:
    """Raises ConfigError where torchrun started this in more than one process: all would write the same files."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count > 1:
        raise ConfigError(f"`sluice {job}` runs in one process and torchrun started {count}; start it without torchrun "
                          "(`sluice train` alone runs under it)")


def is_first() -> bool:
    """Whether this process is the only one, or torchrun's first."""
    return os.environ.get("RANK", "0") == "0"
