"""Shares of a client's four seeds, one sealed box for each neighbour, relayed by a server that cannot open them."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from contracts.errors import ProtocolError
from federated.secure_aggregation import sealed_box, secret_sharing
from federated.secure_aggregation.round_secrets import SHARED, Announcement, RoundSecrets
from federated.secure_aggregation.sealed_box import NONCE_BYTES, TAG_BYTES
from federated.secure_aggregation.secret_sharing import NO_SHARE, SHARE_BYTES

SHARES_BYTES = SHARE_BYTES * len(SHARED)
NO_SHARES = NO_SHARE * len(SHARED)
BOX_BYTES = NONCE_BYTES + SHARES_BYTES + TAG_BYTES


def deal(
    secrets: RoundSecrets, me: int, peers: Mapping[int, Announcement], threshold: int, context: bytes
) -> dict[int, bytes]:
    """A box for each peer. Shares are numbered from 1 in the order of the peers' numbers."""
    order = sorted(peers)
    split = [secret_sharing.split(secrets.shared(*name), threshold, len(order)) for name in SHARED]
    own = secrets.box()
    return {
        peer: sealed_box.seal(_key(own, peers[peer], context), b"".join(shares), _way(me, peer))
        for peer, shares in zip(order, zip(*split, strict=True), strict=True)
    }


def receive(
    secrets: RoundSecrets, me: int, peers: Mapping[int, Announcement], boxes: Mapping[int, bytes], context: bytes
) -> dict[int, bytes]:
    """Sender -> its four shares side by side, NO_SHARES where its box was altered, misdirected or never was one."""
    own = secrets.box()
    opened = {}
    for sender, box in boxes.items():
        try:
            opened[sender] = sealed_box.unseal(_key(own, peers[sender], context), box, _way(sender, me))
        except ProtocolError:  # one bad neighbour costs its own secrets, not this client's part in the round
            opened[sender] = NO_SHARES
    return opened


def share_of(shares: bytes, instance: str, kind: str) -> bytes:
    """One of the four shares; `kind` is "mask" or "self"."""
    start = SHARE_BYTES * SHARED.index((instance, kind))  # type: ignore[arg-type]
    return shares[start : start + SHARE_BYTES]


def _key(own: X25519PrivateKey, peer: Announcement, context: bytes) -> bytes:
    return sealed_box.agree(own, peer.box, b"box" + context)


def _way(sender: int, receiver: int) -> bytes:
    return b"%d to %d" % (sender, receiver)
