"""Opening a sum: what clients reveal, and how the server takes the masks off.

Of every client the neighbours reveal either the self mask (it is in the sum) or the mask key (it is not), never both;
which of the two, all have agreed on before (federated/secure_aggregation/roster_consistency.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from contracts.errors import ProtocolError, RoundAbandoned
from federated.secure_aggregation import sealed_box, secret_sharing
from federated.secure_aggregation.mask_stream import words
from federated.secure_aggregation.masking import NO_ROWS, Layout, PairMask, Total, add_pair
from federated.secure_aggregation.neighbour_graph import threshold
from federated.secure_aggregation.round_secrets import Announcement, Instance, commitment, mask_key, self_key
from federated.secure_aggregation.share_exchange import share_of


def pair_key(
    mine: sealed_box.X25519PrivateKey, theirs: bytes, context: bytes, instance: Instance, places: np.ndarray,
    told: bytes = b"",
) -> bytes:
    """Bound to the rows that both ends were told, so that no two sets of rows ever share a stream, and to what else
    both were `told`: masks of clients that train from different models do not cancel."""
    digest = hashlib.sha256(np.ascontiguousarray(places, dtype="<i8").tobytes()).digest()
    return sealed_box.agree(mine, theirs, b"pair " + instance.encode() + digest + told + context)


def model_hash(dense: np.ndarray, rows: np.ndarray, beside: tuple[float, int]) -> bytes:
    """Of a model as a client is sent it, and what all are told `beside` it (mean samples, the voided round): else a
    server could send all but one client a model without gradients, and the sum would be that one's update."""
    digest = hashlib.sha256(np.array(beside, dtype="<f8").tobytes())
    for part in (dense, rows):
        digest.update(np.ascontiguousarray(part, dtype="<f4").tobytes())
    return digest.digest()


def parted(masked_with: Iterable[int], finished: Collection[int], neighbours: int) -> tuple[list[int], list[int]]:
    """(survivors, lost) among the neighbours that this client's own upload is masked against, sorted; `neighbours`: how
    many it had when the round began. Raises ProtocolError where so few survive that its own upload could be uncovered.
    """
    peers = sorted(set(masked_with))
    survivors = [peer for peer in peers if peer in finished]
    if len(survivors) < threshold(neighbours):
        raise ProtocolError(
            f"only {len(survivors)} of {neighbours} neighbours are said to be in the sum, {threshold(neighbours)} are "
            "the least; refused"
        )
    return survivors, [peer for peer in peers if peer not in finished]


def reveal(
    instance: Instance, survivors: Iterable[int], lost: Iterable[int], held: Mapping[int, bytes]
) -> list[bytes]:
    """A neighbour's shares of the survivors' self masks, then of the keys of the lost. `held`: owner -> its shares."""
    chosen = [(client, "self") for client in survivors] + [(client, "mask") for client in lost]
    return [share_of(held[client], instance, kind) for client, kind in chosen]


@dataclass(kw_only=True)
class SecureSum:
    """The server's half of one instance: the running sum of uploads of `base` and what takes the masks off.

    `graph` is who masks with whom (participants of this instance alone), `dealt` the neighbours that shares were cut
    for, in their order; `told` says what clients that mask these places together were sent with them; `liars` revealed
    false shares.
    """

    instance: Instance
    base: Layout
    context: bytes
    announcements: Mapping[int, Announcement]
    graph: Mapping[int, list[int]]
    dealt: Mapping[int, list[int]]
    told: Callable[[np.ndarray], bytes] = lambda places: b""
    layouts: dict[int, Layout] = field(default_factory=dict)
    liars: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.total = Total(self.base)

    def accept(self, client: int, layout: Layout, upload: np.ndarray) -> None:
        """Adds a masked upload. Raises ProtocolError when it is not of the shape that the client declared."""
        if upload.shape != (layout.size,) or upload.dtype != layout.dtype:
            raise ProtocolError(f"client {client} sent {upload.dtype} {upload.shape}, declared {layout.size} words")
        self.total.add(layout, upload)
        self.layouts[client] = layout

    def questions(self) -> dict[int, tuple[list[int], list[int]]]:
        """Client in the sum -> (its neighbours in the sum, its neighbours that masked and are not)."""
        return {
            client: (
                [peer for peer in self.graph[client] if peer in self.layouts],
                [peer for peer in self.graph[client] if peer not in self.layouts],
            )
            for client in self.layouts
        }

    def open(self, revealed: Mapping[int, np.ndarray], rows_of_lost: Mapping[int, np.ndarray]) -> Total:
        """Takes all masks off. `revealed`: client -> shares [n, 16] in the order of its question; `rows_of_lost`: the
        places that a lost client had declared. Raises RoundAbandoned below a threshold, and where shares do not give
        what their owner committed to: the owner dealt false ones, unless half of its neighbours lie.
        """
        shares = self._by_owner(revealed)
        for client, layout in self.layouts.items():
            seed = self._seed(client, "self", shares, partial(self._is_self_mask, client))
            mask = words(self_key(seed, self.context, self.instance), layout.size, layout.dtype)
            self.total.subtract(layout, mask)
        for client in self._lost():
            seed = self._seed(client, "mask", shares, partial(self._is_mask_key, client))
            self._remove_pairs(client, seed, rows_of_lost.get(client, NO_ROWS))
        return self.total

    def _lost(self) -> list[int]:
        return sorted({lost for _, group in self.questions().values() for lost in group})

    def _by_owner(self, revealed: Mapping[int, np.ndarray]) -> dict[int, dict[int, bytes]]:
        """Owner of the secret -> {number of the share: share}."""
        by_owner: dict[int, dict[int, bytes]] = {}
        questions = self.questions()
        for client, shares in revealed.items():
            survivors, lost = questions[client]
            for owner, share in zip([*survivors, *lost], shares, strict=True):
                by_owner.setdefault(owner, {})[self.dealt[owner].index(client) + 1] = share.tobytes()
        return by_owner

    def _is_self_mask(self, client: int, seed: bytes) -> bool:
        return commitment(seed) == self.announcements[client].commitment(self.instance)

    def _is_mask_key(self, client: int, seed: bytes) -> bool:
        return sealed_box.public_bytes(mask_key(seed, self.instance)) == self.announcements[client].mask(self.instance)

    def _seed(
        self, client: int, kind: str, revealed: Mapping[int, Mapping[int, bytes]], is_seed: Callable[[bytes], bool]
    ) -> bytes:
        dealt, shares = self.dealt[client], revealed.get(client, {})
        least = threshold(len(dealt))
        there = {number: share for number, share in shares.items() if share != secret_sharing.NO_SHARE}
        try:
            seed, false = secret_sharing.combine_checked(
                there, least, is_seed, lambda number: dealt[number - 1] in self.liars)
        except RoundAbandoned as error:
            raise RoundAbandoned(f"{self.instance}, {kind} secret of client {client}: {error}",
                                 (client,) if len(shares) >= least else ()) from None
        self.liars |= {dealt[number - 1] for number in false}
        return seed

    def _remove_pairs(self, lost: int, seed: bytes, places: np.ndarray) -> None:
        """Undoes the masks that survivors share with a lost client: what remains of the pair in the sum."""
        key = mask_key(seed, self.instance)
        for peer in self._survivors_of(lost):
            layout = self.layouts[peer]
            both, at, _ = np.intersect1d(layout.places, places, assume_unique=True, return_indices=True)
            shared = pair_key(key, self.announcements[peer].mask(self.instance), self.context, self.instance, both,
                              self.told(both))
            narrow = layout.with_rows(both)
            mask = np.zeros(narrow.size, dtype=layout.dtype)
            add_pair(narrow, mask, PairMask(shared, sign(peer, lost), np.arange(len(at))))
            self.total.subtract(narrow, mask)

    def _survivors_of(self, lost: int) -> Iterable[int]:
        return [client for client in self.layouts if lost in self.graph[client]]


def sign(mine: int, theirs: int) -> int:
    """+1 at the smaller number's end of a pair, -1 at the other's: their masks cancel."""
    return 1 if mine < theirs else -1
