"""How much a client's answers say about one row, and when the server can tie an update to one client (table 3 of
"Billion-Scale Federated Learning on Mobile Clients", MobiCom 2020).

    eps_1   = ln max(p5/p6, p6/p5, (1-p5)/(1-p6), (1-p6)/(1-p5))       one round
    eps_inf = the same of p1, p2                                      any number of rounds, per row
    p7 = n1 p5 (1-p5)^(n1-1) (1-p6)^n0      exactly one client names the row and holds it
    p8 = (1-p5)^n1 (1-(1-p6)^n0)            only clients name it that do not hold it

eps is per row: for a set of s rows it composes to s * eps.
"""

from __future__ import annotations

import math

from federated.privacy.index_policy import IndexPolicy

RARELY = 0.01  # of a row with one holder: below this share nobody is told that its update of it may be opened


def epsilon(held: float, not_held: float) -> float:
    """Of answering yes with these probabilities; infinite where an answer proves something."""
    return max(_log_ratio(held, not_held), _log_ratio(1 - held, 1 - not_held))


def _log_ratio(a: float, b: float) -> float:
    if a == b:
        return 0.0
    return abs(math.log(a / b)) if a and b else math.inf


def one_round(policy: IndexPolicy) -> float:
    """eps_1, per row."""
    return epsilon(policy.p5, policy.p6)


def any_rounds(policy: IndexPolicy) -> float:
    """eps_inf, per row."""
    return epsilon(policy.p1, policy.p2)


def single_holder_seen(policy: IndexPolicy, holders: int, others: int) -> float:
    """p7."""
    if not holders:
        return 0.0
    return holders * policy.p5 * (1 - policy.p5) ** (holders - 1) * (1 - policy.p6) ** others


def clients_that_hide(policy: IndexPolicy, below: float = RARELY) -> int | None:
    """The fewest clients of a sum with whom p7 of a row with one holder is below; None where no number does (nobody
    names a row that it does not hold)."""
    if policy.p6 in (0.0, 1.0):
        return 2 if policy.p6 else None
    others = max(0, math.floor(math.log(below / policy.p5) / math.log(1 - policy.p6)))
    while single_holder_seen(policy, 1, others) >= below:
        others += 1
    return others + 1


def only_fakes_seen(policy: IndexPolicy, holders: int, others: int) -> float:
    """p8."""
    return (1 - policy.p5) ** holders * (1 - (1 - policy.p6) ** others)
