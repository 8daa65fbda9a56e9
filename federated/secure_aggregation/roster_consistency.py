"""Roster consistency: all clients of a round see one list of who takes part, and one of whose uploads a sum has.

A server that told some clients that v was lost and others that v survived would have both of v's secrets opened. So the
roster of a round (numbers of the published list) is bound into every key of it, neighbours follow from it, and a sum is
opened by those alone who saw more than half of the roster sign for the very same uploads as they did. The roster names
what each client announced: a client that is in several runs at once has as many lives, and what one signs is of no use
to another.

A list of signatures is taken for good when it names QUORUM of the roster and CHECKED of them, drawn at random, hold:
had it no more good ones than half of the roster, this would pass with a probability below 0.75^256 = 1e-31.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence

import numpy as np

from contracts.errors import ProtocolError
from federated.secure_aggregation.identity import Identity, require_signed
from federated.secure_aggregation.neighbour_graph import graph_seed, ring
from federated.secure_aggregation.round_secrets import Instance

QUORUM = 2 / 3
CHECKED = 256
HASH_BYTES = 16


def quorum(roster: int) -> int:
    """How many of a roster must have signed."""
    return int(QUORUM * roster) + 1


def announcement_hash(announcement: bytes) -> bytes:
    """16 bytes of SHA-256."""
    return hashlib.sha256(b"sluice announced " + announcement).digest()[:HASH_BYTES]


def roster_context(number: bytes, fingerprint: bytes, roster: np.ndarray, announced: np.ndarray) -> bytes:
    """What keys of a round are bound to. `fingerprint` of the plan; `roster` [n]: sorted numbers of the published list;
    `announced` uint8 [n, 16]: hashes of their announcements."""
    told = fingerprint + roster.astype("<i4").tobytes() + np.ascontiguousarray(announced).tobytes()
    return number + b" of " + hashlib.sha256(told).digest()


def require_roster(
    roster: np.ndarray, published: int, me: int, peers: Sequence[int], neighbours: int, context: bytes
) -> None:
    """Raises ProtocolError unless the roster is sorted and these peers are the neighbours that it and its `context`
    give client `me`; `published`: how many clients the list has."""
    rising = (np.diff(roster.astype(np.int64)) > 0).all()
    if not rising or me not in roster or roster[0] < 0 or roster[-1] >= published:
        raise ProtocolError(f"the roster of the round is not distinct and sorted, or lacks client {me}; refused")
    expected = ring(roster.tolist(), neighbours, graph_seed(context))[me]
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
    """That these uploads, `bits` of the roster, are in the sum: 64 bytes."""
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
