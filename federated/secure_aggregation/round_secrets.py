"""What one client keeps secret in one round, and what it announces of it.

A round masks twice (the union, then the update), and a client that survives the first may be lost in the second. Each
instance therefore has a mask key and a self mask of its own: opening the self mask of one and the key of the other
uncovers nothing.

    box            key with which shares are sealed for neighbours
    INSTANCE mask  key from which the pair masks of the instance come
    INSTANCE self  seed of the self mask of the instance
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from contracts.errors import ProtocolError
from federated.secure_aggregation import sealed_box
from federated.secure_aggregation.mask_stream import derive
from federated.secure_aggregation.sealed_box import PUBLIC_BYTES, SEED_BYTES

Instance = Literal["union", "update"]
INSTANCES: tuple[Instance, ...] = ("union", "update")
SHARED = tuple((instance, kind) for instance in INSTANCES for kind in ("mask", "self"))
COMMITMENT_BYTES = 16
ANNOUNCEMENT_BYTES = PUBLIC_BYTES * (1 + len(INSTANCES)) + COMMITMENT_BYTES * len(INSTANCES)


@dataclass(frozen=True)
class RoundSecrets:
    """`seeds`: box, then mask and self of each instance."""

    seeds: bytes

    @classmethod
    def draw(cls) -> RoundSecrets:
        """Five seeds from the operating system's randomness."""
        return cls(b"".join(sealed_box.new_seed() for _ in range(1 + len(SHARED))))

    def box(self) -> X25519PrivateKey:
        """The key with which shares for this client are sealed."""
        return sealed_box.private_key(self.seeds[:SEED_BYTES], b"box")

    def shared(self, instance: Instance, kind: str) -> bytes:
        """A seed that neighbours hold shares of."""
        start = SEED_BYTES * (1 + SHARED.index((instance, kind)))
        return self.seeds[start : start + SEED_BYTES]

    def mask_key(self, instance: Instance) -> X25519PrivateKey:
        """The key from which the pair masks of an instance come."""
        return mask_key(self.shared(instance, "mask"), instance)

    def announcement(self) -> bytes:
        """Public keys of the box and of each instance, then the commitments: 128 bytes."""
        keys = [self.box(), *(self.mask_key(instance) for instance in INSTANCES)]
        commitments = [commitment(self.shared(instance, "self")) for instance in INSTANCES]
        return b"".join([*(sealed_box.public_bytes(key) for key in keys), *commitments])


def mask_key(seed: bytes, instance: Instance) -> X25519PrivateKey:
    """As its owner derives it, and the server from an opened seed."""
    return sealed_box.private_key(seed, b"mask " + instance.encode())


def self_key(seed: bytes, context: bytes, instance: Instance) -> bytes:
    """Key of the self mask's stream."""
    return derive(seed, b"self " + instance.encode() + context)


def commitment(seed: bytes) -> bytes:
    """Binds a client to its self mask, so that false shares are noticed when it is opened."""
    return hashlib.sha256(b"sluice self mask " + seed).digest()[:COMMITMENT_BYTES]


@dataclass(frozen=True)
class Announcement:
    """The public side, as the server relays it."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != ANNOUNCEMENT_BYTES:
            raise ProtocolError(f"an announcement has {len(self.raw)} bytes, not {ANNOUNCEMENT_BYTES}")

    @property
    def box(self) -> bytes:
        """Public key that shares are sealed with."""
        return self.raw[:PUBLIC_BYTES]

    def mask(self, instance: Instance) -> bytes:
        """Public key of the pair masks."""
        start = PUBLIC_BYTES * (1 + INSTANCES.index(instance))
        return self.raw[start : start + PUBLIC_BYTES]

    def commitment(self, instance: Instance) -> bytes:
        """To the self mask."""
        start = PUBLIC_BYTES * (1 + len(INSTANCES)) + COMMITMENT_BYTES * INSTANCES.index(instance)
        return self.raw[start : start + COMMITMENT_BYTES]

    def require_usable(self) -> None:
        """Raises ProtocolError on a public key with which nobody could agree: its neighbours would fail on it."""
        probe = sealed_box.private_key(sealed_box.new_seed(), b"probe")
        for public in (self.box, *(self.mask(instance) for instance in INSTANCES)):
            sealed_box.agree(probe, public, b"probe")
