"""What a worker says, beside what others print in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRINTS = "import serving.workers.worker as w, sys; r = w.Reports(); print('noise'); r.send(w.WorkerReport(pong=1))"


def test_what_others_print_is_no_word_to_the_supervisor() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == '{"pong":1}\n'
    assert "noise" in done.stderr
