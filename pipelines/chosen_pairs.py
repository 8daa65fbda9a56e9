"""Which pairs of fields get a statistic: those configured, else the order-2 crosses that the cross search found."""

from __future__ import annotations

import json

from contracts.artifacts import Artifacts
from contracts.config import Config

Pair = tuple[str, str]


def chosen_pairs(config: Config, out: Artifacts) -> list[Pair]:
    """In the order of the configuration, or best cross first; none where statistics are switched off."""
    if config.statistics.model == "none":
        return []
    if config.statistics.pairs or not out.crosses.exists():
        return list(config.statistics.pairs)
    found = json.loads(out.crosses.read_text(encoding="utf-8"))["crosses"]
    pairs = [tuple(cross["parts"]) for cross in found if len(cross["parts"]) == 2]
    return [(left, right) for left, right in dict.fromkeys(pairs) if left.partition("#")[0] != right.partition("#")[0]]
