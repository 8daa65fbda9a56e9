"""Which jobs torchrun may start several times: training alone, which `start_several` does; and who of several speaks
and writes."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from contracts.errors import ConfigError
from sluice.run import final_error

RESTARTS = 3  # of all processes when one dies
RESTARTED = "SLUICE_RESTART_COUNT"


def start_several(workers: int, arguments: Sequence[str]) -> None:
    """Runs so many processes of `sluice` with these arguments, as torchrun does, and ends as they do; returns in each
    of them, and where one process is enough.

    When one dies, all are started anew, up to RESTARTS times; an error of its own, or one that comes again in the next
    start (sluice/run/final_error.py), ends all at once, with its exit code.
    """
    if workers == 1 or "WORLD_SIZE" in os.environ:
        return
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "error")
        os.environ[final_error.VARIABLE] = str(file)
        try:
            code = _until_done(workers, arguments, file)
        finally:
            del os.environ[final_error.VARIABLE]
    raise SystemExit(code)


def _until_done(workers: int, arguments: Sequence[str], file: Path) -> int:
    """The exit code of the last start; after a signal to this process, which all get, as a shell says it."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # who died is said below
    launch = parse_args(["--standalone", f"--nproc-per-node={workers}", "--max-restarts=0", "-m", "sluice.cli",
                         *arguments])
    for restart in range(RESTARTS + 1):
        os.environ[RESTARTED] = str(restart)
        final_error.make(file)
        try:
            run(launch)
            return 0
        except SignalException as error:
            return 128 + error.sigval
        except ChildFailedError as error:
            code = final_error.noted(file)
            if code is not None:
                return code
            print(f"sluice: process {error.get_first_failure()[0]} of {workers} died", file=sys.stderr, flush=True)
    return 1


def refuse_several(job: str) -> None:
    """Raises ConfigError where torchrun started this in more than one process: all would write the same files."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count > 1:
        raise ConfigError(f"`sluice {job}` runs in one process and torchrun started {count}; start it without torchrun "
                          "(`sluice train` alone runs under it)")


def is_first() -> bool:
    """Whether this process is the only one, or torchrun's first."""
    return os.environ.get("RANK", "0") == "0"
