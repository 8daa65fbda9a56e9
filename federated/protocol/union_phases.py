"""The server's half of `union` and `choose`: which private rows are in scope, and which of them each client names."""

from __future__ import annotations

import numpy as np

from contracts.errors import ProtocolError
from federated.privacy.private_set_union import WORD, Code, DirectCode
from federated.protocol.key_agreement import KeyAgreement
from federated.protocol.messages import MadeWhenSent, Message, get
from federated.protocol.plausible_sums import require_counts
from federated.protocol.questions import Steps
from federated.protocol.sum_opening import open_sum, secure_sum
from federated.secure_aggregation.masking import Layout
from federated.secure_aggregation.unmasking import SecureSum


def private_union(keys: KeyAgreement, clients: list[int]) -> Steps[tuple[np.ndarray, list[int], list[int]]]:
    """Sorted private places in scope, the clients whose words they are, and those still there. Raises RoundAbandoned.
    """
    secure, code = yield from memberships(keys, clients)
    total, alive = yield from open_sum(keys, secure, {})
    if keys.plan.counts_holders(keys.phases.number):
        require_counts(keys.phases.number, total.common, code.size, sorted(secure.layouts))
    scope = keys.plan.private_places[code.decode(total.common[: code.size], keys.plan.contributors)]
    return scope, sorted(secure.layouts), alive


def memberships(keys: KeyAgreement, clients: list[int]) -> Steps[tuple[SecureSum, Code]]:
    """The clients' membership vectors, still masked; where holders are counted, their numbers of samples after them."""
    plan, phases = keys.plan, keys.phases
    counted = plan.counts_holders(phases.number)
    code = plan.code if not counted else DirectCode(len(plan.private_places))
    layout = Layout(WORD, code.size + plan.counted_digits * counted)
    secure = secure_sum(keys, "union", layout, clients)
    uploads = yield from phases.ask(
        "union", MadeWhenSent(clients, lambda client: keys.shares_for(client, "union")),
        lambda client, reply: secure.accept(client, layout, get(reply, "words", WORD, (layout.size,))))
    phases.require(len(uploads), "union")
    return secure, code


def choices(keys: KeyAgreement, clients: list[int], union: np.ndarray) -> Steps[dict[int, np.ndarray]]:
    """Client -> sorted places that it will train: the public ones and those of the union that it names."""
    plan, phases = keys.plan, keys.phases
    packed = np.packbits(np.isin(plan.private_places, union, assume_unique=True))
    everything = np.union1d(plan.public_places, union)

    def named(client: int, reply: Message) -> np.ndarray:
        bits = np.unpackbits(get(reply, "chosen", np.uint8, (-(-len(union) // 8),)), count=len(union)).astype(bool)
        if plan.policy.whole_scope and not bits.all():  # its neighbours mask with it on every row
            raise ProtocolError(f"client {client} names {bits.sum()} of {len(union)} rows where all are named; refused")
        return everything if bits.all() else np.union1d(plan.public_places, union[bits])

    replies = yield from phases.ask("choose", {client: {"union": packed} for client in clients}, named)
    phases.require(len(replies), "choose")
    return replies
