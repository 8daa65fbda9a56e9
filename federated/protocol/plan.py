"""What server and clients of a federated run agree on before its first round; all of it is public.

The rows of the model's embedding tables make one space of places 0 .. space - 1. Ranges of `private` places are those
whose use tells something about a client; all others (small tables, "unknown") belong to every client's submodel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from contracts.errors import ConfigError
from federated.averaging.averaging import BY_CLIENTS, Rule
from federated.privacy.index_policy import IndexPolicy
from federated.privacy.private_set_union import DIGITS, Code, DirectCode, smallest_code
from federated.secure_aggregation.fixed_point import WORD, FixedPoint
from federated.secure_aggregation.masking import Layout

Masking = Literal["none", "union", "per_row"]
TAIL = 4  # words after the dense part: its weight, samples kept, samples held, loss
LOSS_SCALE = 1024.0
TOGETHER = 1000  # most clients that are counted in one round: its roster and signatures grow with it
ATTEMPTS = 5  # a round of the protocol is numbered ATTEMPTS x round of the model + attempt, so that none comes twice


def places_in(ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """int64: all places of ranges [start, stop), in their order."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(*ends, dtype=np.int64) for ends in ranges)])


@dataclass(frozen=True)
class Plan:
    """`width` floats a row, `dense` floats of the rest. `min_clients`: a smaller round is refused by every client.
    `expected_union` chooses the union's code; `contributors` > 1 leaves rows out that fewer clients of a round hold.
    `noise` is the variance, in steps, of the Skellam noise that each client adds to each word (0: none), after it has
    scaled its words to an L2 norm of at most `noise_norm` steps. `buckets`: private row j is in the public bucket j
    modulo this; policy "scope" trains one of them a round. `timeout`: seconds that a phase waits. `identities`: public
    keys of all clients by their number, with which they sign what they say (none without masks). `counts`: what is
    added up in place of updates, so that clients that were asked for different things have no sum. `overlap`: while a
    round ends the next one is prepared, and clients remember both."""

    space: int
    private: tuple[tuple[int, int], ...]
    width: int
    dense: int
    policy: IndexPolicy
    masking: Masking = "union"
    rule: Rule = "holders"
    clip: float = 1.0
    levels: int = 2**15
    max_samples: int = 1000
    clients: int = 100
    neighbours: int = 40
    min_clients: int = 3
    expected_union: int = 0
    contributors: int = 1
    noise: float = 0.0
    noise_norm: float = 0.0
    buckets: int = 1
    timeout: float = 600.0
    identities: tuple[bytes, ...] = ()
    counts: str = ""
    overlap: bool = False

    def __post_init__(self) -> None:
        if self.noise and self.rule == "latest":
            raise ConfigError("federated.noise stays in the running mean of averaging 'latest' for ever and adds up; "
                              "set it to 0 or take another averaging")
        if self.overlap and self.rule == "latest":
            raise ConfigError("federated.overlap_rounds prepares a round before the clients of the one before know "
                              "whether their uploads were accepted, which averaging 'latest' needs; set it to false")
        if self.noise and (self.masking != "union" or self.rule != "plain"):
            raise ConfigError(
                f"federated.noise needs masks 'union', where every client's noise lies on every row, and averaging "
                f"'plain', where no weight hangs on a row; this has {self.masking!r} and {self.rule!r}. Take "
                "'all-union-plain', 'cpp5-union-plain' or 'scope-union-plain'"
            )
        self.fixed.require_room(self.clients, self.max_samples)
        if self.masking == "union" and not self.policy.whole_scope:
            raise ConfigError(
                f"masking 'union' needs every client to name the same rows, and policy {self.policy.name!r} does not; "
                f"take '{self.policy.name}-per_row-{self.rule}' or 'cpp5-union-{self.rule}'"
            )

    @property
    def fixed(self) -> FixedPoint:
        """How updates become words."""
        return FixedPoint(self.clip, self.levels)

    def counts_holders(self, number: int) -> bool:
        """Whether clients count who holds a row in this round: in each where contributors are bounded, else in the
        attempts before the first round alone, of the whole population, for averaging that divides by them."""
        return self.contributors > 1 or (number < ATTEMPTS and self.rule in BY_CLIENTS)

    @property
    def counted_digits(self) -> int:
        """Words after a counted membership vector that add up the clients' samples."""
        return DIGITS if self.rule == "latest" else 0

    @cached_property
    def fingerprint(self) -> bytes:
        """Of all of it: what is agreed on in one run is of no use in another."""
        return hashlib.sha256(repr(self).encode()).digest()

    @property
    def masked(self) -> bool:
        """Whether uploads are hidden from the server."""
        return self.masking != "none"

    @cached_property
    def private_places(self) -> np.ndarray:
        """int64, in the order of the ranges, which is sorted."""
        return places_in(self.private)

    @cached_property
    def public_places(self) -> np.ndarray:
        """int64, sorted: what every client trains."""
        return np.setdiff1d(np.arange(self.space, dtype=np.int64), self.private_places, assume_unique=True)

    def public_scope(self, number: int) -> np.ndarray:
        """Sorted places that every client trains in a round of the protocol whose rows are public."""
        if self.policy.name == "all":
            return np.arange(self.space, dtype=np.int64)
        bucket = int(np.random.default_rng(number).integers(self.buckets))
        return np.union1d(self.public_places, self.private_places[bucket :: self.buckets])

    @cached_property
    def code(self) -> Code:
        """How membership of the private rows (numbered from 0) is written."""
        rows = len(self.private_places)
        return smallest_code(rows, self.expected_union) if self.expected_union else DirectCode(rows)

    def update_layout(self, places: np.ndarray) -> Layout:
        """Dense part and tail, then a row's update and its weight."""
        return Layout(WORD, self.dense + TAIL, self.width + 1, self.space, places)
