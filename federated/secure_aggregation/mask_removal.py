"""Taking the masks off a sum while its clients still reveal shares.

A secret opens as soon as enough of its owner's neighbours have revealed theirs, which for most is long before the last
client has replied; what it masked is subtracted then. What the shares that came first do not open (some are false, or
no share reached their client) waits until all are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from contracts.errors import RoundAbandoned
from federated.secure_aggregation import sealed_box, secret_sharing
from federated.secure_aggregation.mask_stream import words
from federated.secure_aggregation.masking import NO_ROWS, PairMask, Total, add_pair
from federated.secure_aggregation.neighbour_graph import threshold
from federated.secure_aggregation.round_secrets import commitment, mask_key, self_key
from federated.secure_aggregation.unmasking import SecureSum, pair_key, sign


class MaskRemoval:
    """Of a `secure` sum that has all the uploads that it will have. `rows_of_lost`: the places that a lost client had
    declared; `liars` revealed false shares."""

    def __init__(self, secure: SecureSum, rows_of_lost: Mapping[int, np.ndarray]) -> None:
        self.questions = secure.questions()
        self.liars = set[int]()
        self._secure, self._rows_of_lost = secure, rows_of_lost
        self._shares: dict[int, dict[int, bytes]] = {owner: {} for owner in secure.layouts}
        self._shares |= {lost: {} for _, group in self.questions.values() for lost in group}
        self._closed = set(self._shares)

    def take(self, client: int, shares: np.ndarray) -> None:
        """What a client in the sum revealed, [n, 16] in the order of its question; each client's once."""
        survivors, lost = self.questions[client]
        for owner, share in zip([*survivors, *lost], shares, strict=True):
            known = self._shares[owner]
            known[self._secure.dealt[owner].index(client) + 1] = share.tobytes()
            if owner in self._closed and len(there := _usable(known)) == self._least(owner):
                seed = secret_sharing.combine(there, self._least(owner))
                if self._proof(owner)(seed):
                    self._uncover(owner, seed)

    def total(self) -> Total:
        """The sum without masks. Raises RoundAbandoned below a threshold, and where shares do not give what their owner
        committed to: the owner dealt false ones, unless half of its neighbours lie."""
        for owner in sorted(self._closed):
            self._uncover(owner, self._seed(owner))
        return self._secure.total

    def _least(self, owner: int) -> int:
        return threshold(len(self._secure.dealt[owner]))

    def _proof(self, owner: int) -> Callable[[bytes], bool]:
        """Whether a seed is the one that its owner committed to."""
        secure = self._secure
        announced, instance = secure.announcements[owner], secure.instance
        if owner in secure.layouts:
            return lambda seed: commitment(seed) == announced.commitment(instance)
        return lambda seed: sealed_box.public_bytes(mask_key(seed, instance)) == announced.mask(instance)

    def _seed(self, owner: int) -> bytes:
        dealt, shares, least = self._secure.dealt[owner], self._shares[owner], self._least(owner)
        try:
            seed, false = secret_sharing.combine_checked(
                _usable(shares), least, self._proof(owner), lambda number: dealt[number - 1] in self.liars)
        except RoundAbandoned as error:
            kind = "self" if owner in self._secure.layouts else "mask"
            raise RoundAbandoned(f"{self._secure.instance}, {kind} secret of client {owner}: {error}",
                                 (owner,) if len(shares) >= least else ()) from None
        self.liars |= {dealt[number - 1] for number in false}
        return seed

    def _uncover(self, owner: int, seed: bytes) -> None:
        self._closed.discard(owner)
        secure = self._secure
        if owner in secure.layouts:
            layout = secure.layouts[owner]
            mask = words(self_key(seed, secure.context, secure.instance), layout.size, layout.dtype)
            secure.total.subtract(layout, mask)
        else:
            self._remove_pairs(owner, seed, self._rows_of_lost.get(owner, NO_ROWS))

    def _remove_pairs(self, lost: int, seed: bytes, places: np.ndarray) -> None:
        """Undoes the masks that survivors share with a lost client: what remains of the pair in the sum."""
        secure, key = self._secure, mask_key(seed, self._secure.instance)
        for peer in self._survivors_of(lost):
            layout = secure.layouts[peer]
            both, at, _ = np.intersect1d(layout.places, places, assume_unique=True, return_indices=True)
            shared = pair_key(key, secure.announcements[peer].mask(secure.instance), secure.context, secure.instance,
                              both, secure.told(both))
            narrow = layout.with_rows(both)
            mask = np.zeros(narrow.size, dtype=layout.dtype)
            add_pair(narrow, mask, PairMask(shared, sign(peer, lost), np.arange(len(at))))
            secure.total.subtract(narrow, mask)

    def _survivors_of(self, lost: int) -> Iterable[int]:
        return (client for client in self._secure.layouts if lost in self._secure.graph[client])


def _usable(shares: Mapping[int, bytes]) -> dict[int, bytes]:
    """Without those of clients that no share reached."""
    return {number: share for number, share in shares.items() if share != secret_sharing.NO_SHARE}
