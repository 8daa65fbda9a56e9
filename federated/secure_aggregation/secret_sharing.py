"""Shamir's shares of 16-byte seeds over GF(2^128), by pycryptodome: any `threshold` open it, fewer say nothing.

Some of the shares may be false. The owner has committed to its seed, so that a subset of shares without a false one is
known when it is met; with it each other share is tested by taking its place in the subset.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from Crypto.Protocol.SecretSharing import Shamir

from contracts.errors import RoundAbandoned

SHARE_BYTES = 16
NO_SHARE = bytes(SHARE_BYTES)  # what is revealed by whom no share reached
TRIES = 300  # subsets; with 3 of 19 shares false and 10 needed, one of 11 subsets has none


def split(seed: bytes, threshold: int, count: int) -> list[bytes]:
    """Shares number 1 to `count`, in order."""
    return [share for _, share in Shamir.split(threshold, count, seed, ssss=False)]


def combine(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The seed, from shares by number. Raises RoundAbandoned when there are fewer than the threshold."""
    if len(shares) < threshold:
        raise RoundAbandoned(f"{len(shares)} shares of a seed are left and {threshold} are needed to open it")
    return Shamir.combine(sorted(shares.items())[:threshold], ssss=False)


def combine_checked(
    shares: Mapping[int, bytes], threshold: int, is_seed: Callable[[bytes], bool], doubted: Callable[[int], bool]
) -> tuple[bytes, set[int]]:
    """The seed that its owner committed to, and the numbers of false shares. `doubted` numbers are taken last. Raises
    RoundAbandoned when there are too few, or no subset gives that seed."""
    order = sorted(shares, key=lambda number: (doubted(number), number))
    drawn = random.Random(len(order))
    subset, seed = order[:threshold], combine({number: shares[number] for number in order[:threshold]}, threshold)
    for _ in range(TRIES):
        if is_seed(seed):
            break
        subset = drawn.sample(order, threshold)
        seed = combine({number: shares[number] for number in subset}, threshold)
    else:
        raise RoundAbandoned(f"no {threshold} of {len(order)} shares give the seed that its owner committed to")
    if subset == order[:threshold]:
        return seed, set()
    rest = subset[1:]
    false = {number for number in set(order) - set(subset)
             if not is_seed(combine({n: shares[n] for n in (*rest, number)}, threshold))}
    return seed, false
