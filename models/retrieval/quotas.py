"""How many candidates each channel of a mixed retrieval may bring: the quotas by which the most targets are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

STEPS = 20  # quotas are multiples of candidates / STEPS
Ranks = Mapping[str, np.ndarray]


def choose(found: Ranks, candidates: int, fixed: Mapping[str, int] | None = None) -> dict[str, int]:
    """Quotas that add up to `candidates`, those of `fixed` as they are. `found`: channel -> [R], the place from 0 of
    each target in its list, `candidates` or more where it is not in it.

    From an even share, and from all for each single channel, candidates pass from one channel to another, any number of
    steps at once, as long as more targets are found; the best end wins, so that no channel alone finds more.
    """
    fixed = {name: min(quota, candidates) for name, quota in (fixed or {}).items()}
    free, room = [name for name in found if name not in fixed], max(candidates - sum(fixed.values()), 0)
    share, rest = divmod(room, len(free))
    even = {name: share + (number < rest) for number, name in enumerate(free)}
    starts = [even, *({name: room * (name == only) for name in free} for only in free)]
    ends = [_improved(fixed | start, free, found, max(candidates // STEPS, 1)) for start in starts]
    return max(ends, key=lambda end: _hits(end, found))


def _hits(quotas: Mapping[str, int], found: Ranks) -> int:
    return int(np.count_nonzero(np.any([found[name] < quota for name, quota in quotas.items()], axis=0)))


def _improved(quotas: dict[str, int], free: Sequence[str], found: Ranks, step: int) -> dict[str, int]:
    while True:
        moved = [quotas | {giver: quotas[giver] - more, taker: quotas[taker] + more}
                 for giver in free for taker in free if giver != taker
                 for more in range(min(step, quotas[giver]), quotas[giver] + 1, step) if more]
        best = max(moved, key=lambda one: _hits(one, found), default=quotas)
        if _hits(best, found) <= _hits(quotas, found):
            return quotas
        quotas = best
