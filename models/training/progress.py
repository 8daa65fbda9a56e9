"""Batches of several epochs as one count for who wants to know how far training is (contracts/progress.py)."""

from __future__ import annotations

from collections.abc import Callable

from contracts.progress import OnProgress


def batch_counter(on_progress: OnProgress, name: str, epochs: int) -> Callable[[int, int], None]:
    """Returns `count(done, batches)` for one epoch after another, which reports batches of all epochs together."""
    finished = 0

    def count(done: int, batches: int) -> None:
        nonlocal finished
        on_progress(name, finished * batches + done, epochs * batches)
        finished += done == batches

    return count
