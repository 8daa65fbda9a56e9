"""The learning rate over a run: constant, or falling linearly to 0 at the end of the planned epochs.

    linear    rate(progress) = learning_rate * (1 - progress),    progress from 0 to 1

With few clicks a row and several epochs, the falling rate averages out the noise that a constant one keeps adding.
"""

from __future__ import annotations

from contracts.config.training import Train


def rate(settings: Train, progress: float) -> float:
    """By `settings.schedule`; `progress` beyond 1 counts as 1."""
    if settings.schedule == "constant":
        return settings.learning_rate
    return settings.learning_rate * max(0.0, 1.0 - progress)
