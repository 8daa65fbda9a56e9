"""`sluice` as a child that is asked to end when its parent has (serving/balancer/ends_with_parent.py).

    python -m sluice.demo.ends_with_parent PARENT WORDS...        PARENT is a process id, WORDS are those of `sluice`
"""

from __future__ import annotations

import runpy
import sys

from serving.balancer.ends_with_parent import end_with


def main() -> None:
    parent, *words = sys.argv[1:]
    if end_with(int(parent)):
        sys.argv[1:] = words
        runpy.run_module("sluice.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
