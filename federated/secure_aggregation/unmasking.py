"""A sum under masks: what hides an upload, what the server adds up, and what clients reveal to open it.

Of every client the neighbours reveal either the self mask (it is in the sum) or the mask key (it is not), never both;
which of the two, all have agreed on before (federated/secure_aggregation/roster_consistency.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.errors import ProtocolError
from federated.secure_aggregation import sealed_box
from federated.secure_aggregation.masking import Layout, Total
from federated.secure_aggregation.neighbour_graph import threshold
from federated.secure_aggregation.round_secrets import Announcement, Instance
from federated.secure_aggregation.share_exchange import share_of


def pair_key(
    mine: sealed_box.X25519PrivateKey, theirs: bytes, context: bytes, instance: Instance, places: np.ndarray,
    told: bytes = b"",
) -> bytes:
    """Bound to the rows that both ends were told, so that no two sets of rows ever share a stream, and to what else
    both were `told`: masks of clients that train from different models do not cancel."""
    digest = hashlib.sha256(np.ascontiguousarray(places, dtype="<i8").tobytes()).digest()
    return sealed_box.agree(mine, theirs, b"pair " + instance.encode() + digest + told + context)


def model_hash(dense: np.ndarray, rows: np.ndarray, beside: Sequence[float]) -> bytes:
    """Of a model as a client is sent it, and what all are told `beside` it (mean samples, void rounds): else a
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
    """The server's half of one instance: the running sum of uploads of `base`.

    `graph` is who masks with whom (participants of this instance alone), `dealt` the neighbours that shares were cut
    for, in their order; `told` says what clients that mask these places together were sent with them. What takes the
    masks off is in federated/secure_aggregation/mask_removal.py.
    """

    instance: Instance
    base: Layout
    context: bytes
    announcements: Mapping[int, Announcement]
    graph: Mapping[int, list[int]]
    dealt: Mapping[int, list[int]]
    told: Callable[[np.ndarray], bytes] = lambda places: b""
    layouts: dict[int, Layout] = field(default_factory=dict)

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


def sign(mine: int, theirs: int) -> int:
    """+1 at the smaller number's end of a pair, -1 at the other's: their masks cancel."""
    return 1 if mine < theirs else -1
