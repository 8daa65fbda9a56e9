"""Which jobs torchrun may start several times: training alone, which `start_several` does; and who of several speaks
and writes."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from contracts.errors import ConfigError
from sluice.run import final_error

RESTARTS = 3  # of all processes when one dies, without anything reached in between
RESTARTED = "SLUICE_RESTART_COUNT"
PATIENCE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"  # seconds that torch leaves processes that were told to end, 30 by itself
CHECKPOINT_SECONDS = 600  # of which a large checkpoint on a slow disk needs many
REACHED = ("*/summary.json", "*/checkpoints*/[0-9]*/progress.json")  # a model that is made, or where one stands


def start_several(workers: int, arguments: Sequence[str], folders: Sequence[Path] = ()) -> None:
    """Runs so many processes of `sluice` with these arguments, as torchrun does, and ends as they do; returns in each
    of them, and where one process is enough.

    When one dies, all are started anew, and up to RESTARTS times in a row without a new checkpoint or a finished model
    in one of the `folders`; an error of its own, or one that comes again in the next start
    (sluice/run/final_error.py), ends all at once, with its exit code. A signal to this process reaches all, who have
    CHECKPOINT_SECONDS to end.
    """
    if workers == 1 or "WORLD_SIZE" in os.environ:
        return
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "error")
        os.environ[final_error.VARIABLE] = str(file)
        try:
            code = _until_done(workers, arguments, file, folders)
        finally:
            del os.environ[final_error.VARIABLE]
    raise SystemExit(code)


def _until_done(workers: int, arguments: Sequence[str], file: Path, folders: Sequence[Path]) -> int:
    """The exit code of the last start; after a signal to this process, which all get, as a shell says it."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # who died is said below
    os.environ.setdefault(PATIENCE, str(CHECKPOINT_SECONDS))
    launch = parse_args(["--standalone", f"--nproc-per-node={workers}", "--max-restarts=0", "-m", "sluice.cli",
                         *arguments])
    left, newest = RESTARTS, _newest(folders)
    for restart in itertools.count():
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
        before, newest = newest, _newest(folders)
        left = (RESTARTS if newest > before else left) - 1
        if left < 0:
            break
    print(f"sluice: {RESTARTS} restarts in a row came to no new checkpoint; this was the last", file=sys.stderr)
    return 1


def _newest(folders: Sequence[Path]) -> int:
    """Time in ns of what was reached last, 0 before anything was. A file may go while it is looked at."""
    found = 0
    for path in (path for folder in folders for pattern in REACHED for path in folder.glob(pattern)):
        with contextlib.suppress(FileNotFoundError):
            found = max(found, path.stat().st_mtime_ns)
    return found


def refuse_several(job: str) -> None:
    """Raises ConfigError where torchrun started this in more than one process: all would write the same files."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count > 1:
        raise ConfigError(f"`sluice {job}` runs in one process and torchrun started {count}; start it without torchrun "
                          "(`sluice train` alone runs under it)")


def is_first() -> bool:
    """Whether this process is the only one, or torchrun's first."""
    return os.environ.get("RANK", "0") == "0"
