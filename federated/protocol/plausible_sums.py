"""What an opened sum of honest uploads can be; any other is no sum, and its round is abandoned.

Of n clients, n_j of which named row j, each of at most v samples (`max_samples`) and of entries up to L steps:

                    holders        heat       plain          latest
    weight W        = samples      = n        = samples      = n            0 <= samples <= held
    samples         <= n v                    <= n v
    row weight w_j  <= n_j v       <= n_j     <= n_j         <= n_j         >= 0
    |row j|         <= w_j L       <= w_j L   <= w_j v L     <= n_j L
    |dense|         <= W L         <= W L     <= W L         <= W L

Under noise all weights are 1 and what is counted is 0: every word lies within n `noise_norm` and the noise's reach.
A client that masked other rows than it named, or sent any words at all, leaves words that are uniform over 2^32: that
the weight is right by chance has odds of 2^-32 (that four words lie within the noise's, of (reach / 2^31)^4). What a
client claims within the bounds is beyond any check of a sum: it can weigh as much as all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from contracts.errors import RoundAbandoned
from federated.averaging.averaging import BY_CLIENTS
from federated.privacy import skellam
from federated.privacy.private_set_union import BASE
from federated.protocol.plan import TAIL, Plan
from federated.secure_aggregation.fixed_point import signed
from federated.secure_aggregation.masking import Total


def require_plausible(
    plan: Plan, number: int, total: Total, places: Mapping[int, np.ndarray], clients: Sequence[int]
) -> None:
    """Raises RoundAbandoned, with the `clients` of the sum as suspects; `places`: client -> the rows that it named."""
    wrong = _beyond_noise(plan, total, len(clients)) if plan.noise else _beyond_weights(
        plan, total, _naming(plan.space, [places[client] for client in clients]), len(clients))
    if wrong:
        raise _no_sum(number, wrong, clients)


def require_counts(number: int, words: np.ndarray, holders: int, clients: Sequence[int]) -> None:
    """Of counted memberships: `holders` words of how many hold a row, then digits. Raises RoundAbandoned."""
    if (words[:holders] > len(clients)).any():
        raise _no_sum(number, f"more than {len(clients)} hold a row", clients)
    if (words[holders:] > len(clients) * (BASE - 1)).any():
        raise _no_sum(number, "digits of their samples are no digits", clients)


def _no_sum(number: int, wrong: str, clients: Sequence[int]) -> RoundAbandoned:
    return RoundAbandoned(
        f"round {number}: what was opened is no sum of {len(clients)} clients' uploads: {wrong}. One of them sent "
        "other words than it said; the round is abandoned and changes nothing", suspects=tuple(clients))


def _naming(space: int, named: Sequence[np.ndarray]) -> np.ndarray:
    """int64 [space]: by how many clients a row is named."""
    of_row = np.zeros(space, dtype=np.int64)
    for places in named:
        of_row[places] += 1
    return of_row


def _beyond_weights(plan: Plan, total: Total, named: np.ndarray, clients: int) -> str:
    """What is out of its bounds, in words; empty where nothing is."""
    largest, heaviest = plan.fixed.largest, plan.max_samples
    weight, samples, held, _ = signed(total.common[plan.dense : plan.dense + TAIL])
    by_clients = plan.rule in BY_CLIENTS
    if weight != (clients if by_clients else samples):
        return f"their weight is {weight}, their samples {samples}"
    if not 0 <= samples <= held or (not by_clients and samples > clients * heaviest):
        return f"{samples} samples of {held}, of each at most {heaviest}"
    if (np.abs(signed(total.common[: plan.dense])) > weight * largest).any():
        return f"an entry is larger than the clip allows at a weight of {weight}"
    if plan.counts and (signed(total.common[: plan.dense]) < 0).any():
        return "a count is below 0"
    weights = signed(total.rows[:, -1])
    if (weights < 0).any() or (weights > named * (heaviest if plan.rule == "holders" else 1)).any():
        return "a row weighs more than those that named it can give it"
    bound = {"plain": weights * heaviest, "latest": named}.get(plan.rule, weights) * largest
    if (np.abs(signed(total.rows[:, :-1])) > bound[:, None]).any():
        return "a row's entry is larger than the clip allows at its weight"
    return ""


def _beyond_noise(plan: Plan, total: Total, clients: int) -> str:
    reach = skellam.reach(clients * plan.noise)
    counted = np.concatenate([signed(total.common[plan.dense :]), signed(total.rows[:, -1])])
    if (np.abs(counted) > reach).any():
        return f"a word that nobody adds to is beyond the noise's reach of {reach}"
    entries = np.concatenate([signed(total.common[: plan.dense]), signed(total.rows[:, :-1]).ravel()])
    if (np.abs(entries) > clients * plan.noise_norm + reach).any():
        return f"an entry is beyond {clients} times federated.noise_norm and the noise's reach of {reach}"
    return ""
