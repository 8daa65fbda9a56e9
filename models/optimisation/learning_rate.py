"""The learning rate over a run, and when the run ends.

    linear      learning_rate * (1 - progress),     progress from 0 to 1 of the planned epochs
    constant    learning_rate
    plateau     learning_rate * FALL^n after n plateaus

With few clicks a row and several epochs, a falling rate averages out the noise that a constant one keeps adding. A
plateau needs no plan: training takes as many epochs as the data carry. One epoch that is no better may be chance, above
all early and where epochs are short, so that a plateau is `patience` of them in a row. An epoch whose loss is level
with the least one counts half: nothing is overfitted yet, and networks have stood on a plateau for epochs before they
found what the data hold.
"""

from __future__ import annotations

from typing import Literal

Schedule = Literal["plateau", "linear", "constant"]
FALL = 0.1
MOST_FALLS = 2  # below a hundredth of the rate weights stay where they are
LEAST_GAIN = 1e-3  # of the loss: at a rate that has fallen it goes on shrinking a little for long
LEVEL = 5e-3  # of the loss, above the least one: epochs on one plateau differ by as much
Verdict = Literal["go on", "fall", "stop"]


def rate(learning_rate: float, schedule: Schedule, progress: float, falls: int) -> float:
    """`progress` beyond 1 counts as 1."""
    if schedule == "linear":
        return learning_rate * max(0.0, 1.0 - progress)
    return learning_rate * FALL**falls if schedule == "plateau" else learning_rate


class Patience:
    """Counts epochs in a row without a better validation figure, those of a level loss half.

    After `patience` of them a run of another schedule ends; on a plateau the rate falls, and the run ends if the next
    epoch is no better either, or at the plateau after MOST_FALLS. `falls` so far.
    """

    def __init__(self, schedule: Schedule, patience: int) -> None:
        self.schedule, self.patience, self.falls = schedule, patience, 0
        self._best, self._least, self._misses = -float("inf"), float("inf"), 0.0
        self._fell = False  # since the last better figure

    def after(self, score: float, loss: float) -> Verdict:
        """The figures of an epoch: the larger score, or the smaller loss, the better."""
        better = score > self._best or loss < self._least * (1.0 - LEAST_GAIN)
        level = loss <= self._least * (1.0 + LEVEL)
        self._misses = 0.0 if better else self._misses + (0.5 if level else 1.0)
        self._best, self._least = max(self._best, score), min(self._least, loss)
        self._fell = self._fell and not better
        if self._misses < self.patience:
            return "go on"
        if self.schedule != "plateau" or self._fell or self.falls == MOST_FALLS:
            return "stop"
        self.falls, self._fell = self.falls + 1, True
        return "fall"
