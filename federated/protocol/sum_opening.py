"""The server's half of `agree` and `open`: clients sign for the uploads of a sum, then reveal what opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from contracts.errors import RoundAbandoned
from federated.protocol.key_agreement import KeyAgreement
from federated.protocol.messages import Message, Phase, get, numbers
from federated.protocol.questions import Steps
from federated.secure_aggregation.identity import SIGNATURE_BYTES
from federated.secure_aggregation.mask_removal import MaskRemoval
from federated.secure_aggregation.masking import Layout, Total
from federated.secure_aggregation.roster_consistency import finished_bits, quorum, require_finished_signed
from federated.secure_aggregation.round_secrets import Instance
from federated.secure_aggregation.secret_sharing import SHARE_BYTES
from federated.secure_aggregation.unmasking import SecureSum

AGREE: dict[Instance, Phase] = {"union": "agree_union", "update": "agree_update"}
OPEN: dict[Instance, Phase] = {"union": "open_union", "update": "open_update"}


def secure_sum(
    keys: KeyAgreement, instance: Instance, layout: Layout, clients: list[int],
    told: Callable[[np.ndarray], bytes] = lambda places: b"",
) -> SecureSum:
    """Of these clients, each masking with those of its neighbours that are among them and dealt shares. `told`: what
    clients that mask these places together were sent with them."""
    there = set(clients)
    graph = {client: [peer for peer in keys.dealt.get(client, []) if peer in there] for client in clients}
    return SecureSum(
        instance=instance, base=layout, context=keys.context, announcements=keys.announced, graph=graph,
        dealt=keys.dealt, told=told,
    )


def open_sum(
    keys: KeyAgreement, secure: SecureSum, places: Mapping[int, np.ndarray]
) -> Steps[tuple[Total, list[int]]]:
    """The sum of the uploads, and the clients that answered last. `places` that each client declared. Raises
    RoundAbandoned where too few sign or reveal."""
    if not keys.plan.masked:
        return secure.total, sorted(secure.layouts)
    agreed = yield from _agreed(keys, secure)
    removal, phase = MaskRemoval(secure, places), OPEN[secure.instance]
    signers = sorted(agreed)[: quorum(len(keys.roster))]
    signatures = {"signers": numbers([keys.signed[client].signer for client in signers]),
                  "signatures": np.array([agreed[client] for client in signers], dtype=np.uint8).reshape(
                      -1, SIGNATURE_BYTES)}

    def taken(client: int, reply: Message) -> None:
        count = sum(map(len, removal.questions[client]))
        removal.take(client, get(reply, "shares", np.uint8, (count, SHARE_BYTES)))

    revealed = yield from keys.phases.ask(phase, dict.fromkeys(agreed, signatures), taken)
    with keys.phases.timed(phase):
        return removal.total(), sorted(revealed)


def _agreed(keys: KeyAgreement, secure: SecureSum) -> Steps[dict[int, np.ndarray]]:
    """Client -> its signature for the uploads that are in the sum."""
    phase, number = AGREE[secure.instance], keys.phases.number
    bits = finished_bits(keys.roster, [keys.signed[client].signer for client in secure.layouts])

    def checked(client: int, reply: Message) -> np.ndarray:
        signature = get(reply, "signature", np.uint8, (SIGNATURE_BYTES,))
        require_finished_signed(keys.plan.identities, secure.instance, bits, keys.context,
                                keys.signed[client].signer, signature.tobytes())
        return signature

    agreed = yield from keys.phases.ask(phase, {client: {"finished": bits} for client in secure.layouts}, checked)
    least = quorum(len(keys.roster))
    if len(agreed) < least:
        raise RoundAbandoned(f"round {number}: {len(agreed)} of {len(keys.roster)} clients are left in {phase!r}, "
                             f"{least} are the least; it is abandoned and changes nothing")
    return agreed
