"""The learning rate over a run.

    linear      learning_rate * (1 - progress),     progress from 0 to 1 of the planned epochs
    constant    learning_rate
    plateau     learning_rate * FALL^n after n epochs that were no better than the best before them

With few clicks a row and several epochs, a falling rate averages out the noise that a constant one keeps adding. A
plateau needs no plan: training takes as many epochs as the data carry.
"""

from __future__ import annotations

from typing import Literal

Schedule = Literal["plateau", "linear", "constant"]
FALL = 0.1


def rate(learning_rate: float, schedule: Schedule, progress: float, misses: int) -> float:
    """`progress` beyond 1 counts as 1; `misses` are epochs without a better validation figure, of the whole run."""
    if schedule == "linear":
        return learning_rate * max(0.0, 1.0 - progress)
    return learning_rate * FALL**misses if schedule == "plateau" else learning_rate
