"""Where a worker begins: `python -m serving.workers.worker_start SETTINGS`.

Python runs a module's imports in the main thread, which will serve and so has to keep its priority. What a worker
imports before it can do anything takes a sixth of a second of a core, so it is imported from here, behind those that
serve meanwhile.
"""

from __future__ import annotations

import sys
from importlib import import_module

from contracts.behind_others import behind_others


def main(argument: str) -> int:
    """Serves until it is stopped. Returns the exit code."""
    return int(behind_others(lambda: import_module("serving.workers.worker")).main(argument))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
