"""Shamir's shares of 16-byte seeds over GF(2^128), by pycryptodome: any `threshold` open it, fewer say nothing."""

from __future__ import annotations

from collections.abc import Mapping

from Crypto.Protocol.SecretSharing import Shamir

from contracts.errors import RoundAbandoned

SHARE_BYTES = 16


def split(seed: bytes, threshold: int, count: int) -> list[bytes]:
    """Shares number 1 to `count`, in order."""
    return [share for _, share in Shamir.split(threshold, count, seed, ssss=False)]


def combine(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The seed, from shares by number. Raises RoundAbandoned when there are fewer than the threshold."""
    if len(shares) < threshold:
        raise RoundAbandoned(f"{len(shares)} shares of a seed are left and {threshold} are needed to open it")
    return Shamir.combine(sorted(shares.items())[:threshold], ssss=False)
