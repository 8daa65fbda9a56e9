"""How long work says how far it is: a callback with the work's name, what is done and what there is in all."""

from __future__ import annotations

from collections.abc import Callable

OnProgress = Callable[[str, int, int], None]


def batch_counter(on_progress: OnProgress, name: str, epochs: int) -> Callable[[int, int], None]:
    """Returns `count(done, batches)` for one epoch after another, which reports batches of all epochs together."""
    finished = 0

    def count(done: int, batches: int) -> None:
        nonlocal finished
        on_progress(name, finished * batches + done, epochs * batches)
        finished += done == batches

    return count
