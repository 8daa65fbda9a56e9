"""A text that holds the SHA-256 of its own bytes, with zeros in the digest's place: one whose bytes have changed, each
of them, is told from the one that was written. It finds damage, not intent: who may write the text may seal it."""

from __future__ import annotations

import hashlib
import re

UNSEALED = "0" * 64


def sealed(text: bytes) -> bytes:
    """`text` holds `UNSEALED` once, where the seal goes."""
    return text.replace(UNSEALED.encode(), hashlib.sha256(text).hexdigest().encode())


def is_intact(text: bytes, seal: object) -> bool:
    """Are these the bytes that were sealed?"""
    if not isinstance(seal, str) or not re.fullmatch("[0-9a-f]{64}", seal) or text.count(seal.encode()) != 1:
        return False
    return sealed(text.replace(seal.encode(), UNSEALED.encode())) == text
