"""Why each field went, in figures and in one sentence.

The recall a field is worth is what the network with all fields loses, on requests of the validation window, when that
field's input becomes a constant and nothing else changes.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from contracts.summaries.prerank import DroppedField
from models.preranking.sweep import Point, Task, first

REQUESTS = 100


def dropped(task: Task, everything: Point, kept: list[str]) -> list[DroppedField]:
    """Every field that is not in `kept`, the most expensive first."""
    fewer = replace(task, evaluated=first(task.evaluated, REQUESTS))
    base, price = fewer.quality(everything.network).recalls, task.price(everything.kept)
    unit, found = "cost" if task.measured is None else "time", []
    for name in everything.kept:
        if name not in kept:
            network, others = copy.deepcopy(everything.network), [other for other in everything.kept if other != name]
            network.keep(others)
            change = fewer.quality(network).recalls - base
            error = float(change.std(ddof=1) / np.sqrt(len(change)))
            found.append(DroppedField(field=name, recall=float(change.mean()), error=error,
                                      share=1.0 - task.price(others) / price, unit=unit))
    return sorted(found, key=lambda field: -field.share)
