"""Why each field went, in figures and in one sentence.

The recall a field is worth is what the network with all fields loses, on requests of the validation window, when that
field's input becomes a constant and nothing else changes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from models.prerank_sweep import Point, Task, first

REQUESTS = 60
NOTHING = 0.001


@dataclass(frozen=True)
class Dropped:
    """`recall` is the change without the field, `cost_share` its share of what all fields cost."""

    field: str
    recall: float
    cost_share: float

    @property
    def sentence(self) -> str:
        why = "it changes nothing" if self.recall > -NOTHING else "what it adds is not worth its cost"
        return f"{self.field}: {self.recall:+.4f} recall, {-self.cost_share:+.0%} cost; {why}"


def dropped(task: Task, everything: Point, kept: list[str]) -> list[Dropped]:
    """Every field that is not in `kept`, the most expensive first."""
    judged = replace(task, judged=first(task.judged, REQUESTS))
    base, total = judged.quality(everything.network).recall, sum(task.costs.values())
    found = []
    for name in everything.kept:
        if name not in kept:
            network = copy.deepcopy(everything.network)
            network.keep([other for other in everything.kept if other != name])
            lost = judged.quality(network).recall - base
            found.append(Dropped(name, lost, task.costs[name] / total))
    return sorted(found, key=lambda one: -one.cost_share)
