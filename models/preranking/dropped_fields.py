"""Why each field went, in figures and in one sentence.

The recall a field is worth is what the network with all fields loses, on requests of the validation window, when that
field's input becomes a constant and nothing else changes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from models.preranking.sweep import Point, Task, first

REQUESTS = 100


@dataclass(frozen=True)
class Dropped:
    """`recall` is the change without the field, `error` the standard error of that over requests; `share` the field's
    part of the price of all fields, `unit` what that is in."""

    field: str
    recall: float
    error: float
    share: float
    unit: str

    @property
    def sentence(self) -> str:
        why = "no loss beyond chance" if -self.recall <= 2.0 * self.error else "what it adds is not worth its cost"
        return f"{self.field}: {self.recall:+.4f} recall, {-self.share:+.1%} {self.unit}; {why}"


def dropped(task: Task, everything: Point, kept: list[str]) -> list[Dropped]:
    """Every field that is not in `kept`, the most expensive first."""
    judged = replace(task, judged=first(task.judged, REQUESTS))
    base, price = judged.quality(everything.network).recalls, task.price(everything.kept)
    unit, found = "cost" if task.measured is None else "time", []
    for name in everything.kept:
        if name not in kept:
            network, others = copy.deepcopy(everything.network), [one for one in everything.kept if one != name]
            network.keep(others)
            change = judged.quality(network).recalls - base
            error = float(change.std(ddof=1) / np.sqrt(len(change)))
            found.append(Dropped(name, float(change.mean()), error, 1.0 - task.price(others) / price, unit))
    return sorted(found, key=lambda one: -one.share)
