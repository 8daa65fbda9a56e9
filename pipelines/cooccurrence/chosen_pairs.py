"""Which pairs of fields get a statistic: those configured, else the order-2 crosses that the cross search found."""

from __future__ import annotations

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features import found_crosses
from contracts.windows import read_timed

Pair = tuple[str, str]


def chosen_pairs(config: Config, out: Artifacts) -> list[Pair]:
    """In the order of the configuration, or best cross first.

    None where statistics are switched off, or where nobody asked for them and there is no statistics window to take
    them from.
    """
    if config.pair_rates.model == "none":
        return []
    if config.pair_rates.pairs:
        return list(config.pair_rates.pairs)
    found = found_crosses.read(out.crosses)
    if found is None or config.log.event_time is None or "statistics" not in read_timed(out.windows):
        return []
    pairs = dict.fromkeys((cross.parts[0], cross.parts[1]) for cross in found.crosses if cross.order == 2)
    return [(left, right) for left, right in pairs if left.partition("#")[0] != right.partition("#")[0]]
