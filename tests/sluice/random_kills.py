"""A day is killed at random moments and re-run: the same content as undisturbed, every time. `make kill-test` runs it.

    python -m tests.sluice.random_kills --times 10

Each time a day begins in an empty folder, is killed with everything it started at a moment drawn uniformly from the
seconds that the undisturbed day took, and then done again from its first job.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from contracts.artifacts import Artifacts
from tests.sluice.day_result import day_result, left_behind
from tests.sluice.small_day import JOBS, KILLED, Forks, command, write_log


def day(forks: Forks, data: Path, out: Path, seconds: float | None = None) -> str:
    """Runs the jobs in turn; returns the one that was killed after `seconds` of all, "" where none was."""
    begun = time.monotonic()
    for job in JOBS:
        left = None if seconds is None else max(seconds - (time.monotonic() - begun), 0.01)
        code = forks.run(command(job, data, out), seconds=left)
        if code == KILLED and left is not None:
            return job
        if code:
            sys.exit(f"{job} in {out} failed with {code}:\n{forks.said()[-3000:]}")
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="sluice-kills-") as place:
        folder = Path(place)
        forks, data = Forks(folder / "said.log"), write_log(folder / "data")
        begun = time.monotonic()
        day(forks, data, folder / "quiet")
        whole, wanted = time.monotonic() - begun, day_result(Artifacts(folder / "quiet"))
        print(f"undisturbed: {whole:.0f} s, bundle {str(wanted['bundle'])[:12]}", flush=True)
        wrong = 0
        for number in range(arguments.times):
            out, moment = folder / f"killed-{number}", float(draw.uniform(0, whole))
            job = day(forks, data, out, moment)
            day(forks, data, out)
            same = day_result(Artifacts(out)) == wanted and not left_behind(out)
            wrong += not same
            print(f"{number + 1}: killed after {moment:.0f} s in {job or 'nothing'}: {'same' if same else 'DIFFERS'}",
                  flush=True)
        forks.close()
    sys.exit(f"{wrong} of {arguments.times} days differ" if wrong else 0)


if __name__ == "__main__":
    main()
