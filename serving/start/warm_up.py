"""A funnel's first requests, before anybody's: they pay for what is made when it is first needed.

They are made behind others, as a fresh process may come up beside those that serve. What a stage takes at first is no
sign of what it will take: the funnel's clock forgets it, and learns anew from a few, of which it counts the processor
time alone, as others' requests go before them. Else the first callers of a fresh process would be refused, or answered
without its slow stages, for want of time that is there.
"""

from __future__ import annotations

import gc
import time
from functools import partial

from contracts.behind_others import behind_others, give_way
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel

FIRST, EXPLAINED, LAST = 200, 20, 17  # requests: so many that one hiccup of the last moves no quantile
EXPLAIN_EVERY = 4  # of the last, with reasons
LONGEST = 3.0  # seconds of a core for all but the last
COLLECT_AFTER = (700, 10, 1)  # objects, rounds, rounds: of 70,000 at once every caller waits for 70 ms


def warm_up(funnel: Funnel, bundle: LoadedBundle) -> None:
    """What was loaded is then left alone by the garbage collection."""
    behind_others(partial(_first_requests, funnel, bundle))
    funnel.forget_times()
    with funnel.timed_by(time.thread_time):
        behind_others(partial(_last_requests, funnel, bundle))


def _last_requests(funnel: Funnel, bundle: LoadedBundle) -> None:
    for user in users(bundle, LAST):
        _ask(funnel, bundle, user, False, listed(bundle))
    for number, user in enumerate(users(bundle, LAST)):
        _ask(funnel, bundle, user, number % EXPLAIN_EVERY == 0)


def users(bundle: LoadedBundle, count: int) -> list[str]:
    """So many, who come again where the bundle knows fewer; somebody unknown where it knows nobody."""
    known = len(bundle.users)
    return [bundle.users.key(number % known) if known else "nobody" for number in range(count)]


def listed(bundle: LoadedBundle) -> tuple[str, ...]:
    """As many items as an answer has, for a request that names its candidates."""
    return tuple(bundle.items.key(row) for row in range(min(len(bundle.items), bundle.settings.serve.default_limit)))


def collect_in_pieces() -> None:
    """What is there now is never looked through again for cyclic garbage; what comes is, a few thousand at a time.

    CPython leaves out a full collection until a fourth has come of what the last one left. That of the second counts
    nothing of what is frozen.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    gc.set_threshold(*COLLECT_AFTER)


def _first_requests(funnel: Funnel, bundle: LoadedBundle) -> None:
    end = time.thread_time() + LONGEST
    for number, user in enumerate(users(bundle, FIRST)):
        if number >= EXPLAINED and time.thread_time() > end:
            break
        _ask(funnel, bundle, user, number < EXPLAINED)
    collect_in_pieces()


def _ask(
    funnel: Funnel, bundle: LoadedBundle, user: str, explain: bool, candidates: tuple[str, ...] | None = None
) -> None:
    limit = bundle.settings.serve.default_limit
    funnel.rank(RankQuery(user=user, limit=limit, explain=explain, candidates=candidates), Deadline(None))
    give_way()
