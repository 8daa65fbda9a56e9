"""One story for all: who takes part in a round, and whose uploads are in a sum that is to be opened.

A server that told some clients that v was lost and others that v survived would have both of v's secrets opened. So the
roster of a round (numbers of the published list) is bound into every key of it, neighbours follow from it, and a sum is
opened by those alone who saw more than half of the roster sign for the very same uploads as they did.

A list of signatures is taken for good when it names QUORUM of the roster and CHECKED of them, drawn at random, hold:
had it no more good ones than half of the roster, this would pass with a probability below 0.75^64 = 1e-8.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence

import numpy as np

from contracts.errors import ProtocolError
from federated.identity import Identity, require_signed
from federated.neighbour_graph import ring
from federated.round_secrets import Instance

QUORUM = 2 / 3
CHECKED = 64


def quorum(roster: int) -> int:
    """How many of a roster must have signed."""
    return int(QUORUM * roster) + 1


def roster_context(number: bytes, roster: np.ndarray) -> bytes:
    """What keys of a round are bound to. `roster`: sorted numbers of the published list."""
    return number + b" of " + hashlib.sha256(roster.astype("<i4").tobytes()).digest()


def require_roster(roster: np.ndarray, me: int, peers: Sequence[int], neighbours: int, seed: int) -> None:
    """Raises ProtocolError unless the roster is sorted and these peers are the neighbours that it gives client `me`."""
    if (np.diff(roster) <= 0).any() or me not in roster:
        raise ProtocolError(f"the roster of the round is not distinct and sorted, or lacks client {me}; refused")
    expected = ring(roster.tolist(), neighbours, seed)[me]
    if sorted(peers) != expected:
        raise ProtocolError(
            f"client {me} is told neighbours {sorted(peers)}, the roster gives it {expected}, each once; refused")


def finished_bits(roster: np.ndarray, finished: Collection[int]) -> np.ndarray:
    """uint8 [ceil(n / 8)]: which of the roster are in the sum."""
    return np.packbits(np.isin(roster, list(finished)))


def among(roster: np.ndarray, bits: np.ndarray) -> set[int]:
    """The inverse of `finished_bits`."""
    return set(roster[np.unpackbits(bits, count=len(roster)).astype(bool)].tolist())


def sign_finished(identity: Identity, instance: Instance, bits: np.ndarray, context: bytes) -> bytes:
    return identity.sign(_what(instance), bits.tobytes(), context)


def require_finished_signed(
    published: Sequence[bytes], instance: Instance, bits: np.ndarray, context: bytes, signer: int, signature: bytes
) -> None:
    """Raises ProtocolError unless this client signed for these uploads."""
    require_signed(published, signer, _what(instance), bits.tobytes(), signature, context)


def require_agreed(
    published: Sequence[bytes], instance: Instance, bits: np.ndarray, context: bytes, roster: np.ndarray,
    signers: Sequence[int], signatures: np.ndarray,
) -> None:
    """Raises ProtocolError unless enough of the roster signed for these uploads. `signatures` [m, 64]."""
    distinct = set(signers)
    if len(distinct) < len(signers) or not distinct <= among(roster, bits):
        raise ProtocolError(f"signatures for the {instance} are not each of another client of its sum; refused")
    if len(signers) < quorum(len(roster)):
        raise ProtocolError(f"{len(signers)} of {len(roster)} clients signed for the sum of the {instance}, "
                            f"{quorum(len(roster))} are the least; refused")
    for at in secrets.SystemRandom().sample(range(len(signers)), min(CHECKED, len(signers))):
        require_finished_signed(published, instance, bits, context, signers[at], signatures[at].tobytes())


def _what(instance: Instance) -> bytes:
    return b"sum of the " + instance.encode()
