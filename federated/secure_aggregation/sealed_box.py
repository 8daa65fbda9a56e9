"""Key agreement between two clients, and boxes that only the other can open and that nobody can alter on the way.

X25519 ▶ HKDF-SHA256 ▶ ChaCha20-Poly1305. Private keys are derived from seeds of 16 bytes, so that a key can be shared
among neighbours as one short secret (federated/secure_aggregation/secret_sharing.py).
"""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from contracts.errors import ProtocolError
from federated.secure_aggregation.mask_stream import derive

SEED_BYTES, PUBLIC_BYTES = 16, 32
NONCE_BYTES, TAG_BYTES = 12, 16


def new_seed() -> bytes:
    """16 bytes from the operating system."""
    return secrets.token_bytes(SEED_BYTES)


def private_key(seed: bytes, purpose: bytes) -> X25519PrivateKey:
    """One seed gives an independent key for each purpose."""
    return X25519PrivateKey.from_private_bytes(derive(seed, b"sluice x25519 " + purpose))


def public_bytes(key: X25519PrivateKey) -> bytes:
    """32 bytes."""
    return key.public_key().public_bytes_raw()


def agree(mine: X25519PrivateKey, theirs: bytes, info: bytes) -> bytes:
    """The 32 bytes that both ends compute and nobody else. Raises ProtocolError on a degenerate public key."""
    try:
        shared = mine.exchange(X25519PublicKey.from_public_bytes(theirs))
    except ValueError:
        raise ProtocolError("a public key lies in a small subgroup; the message was forged") from None
    ends = b"".join(sorted((public_bytes(mine), theirs)))
    return derive(shared, ends + info)


def seal(key: bytes, text: bytes, context: bytes) -> bytes:
    """nonce ‖ ciphertext ‖ tag; `context` must be equal where the box is opened."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, text, context)


def unseal(key: bytes, box: bytes, context: bytes) -> bytes:
    """Raises ProtocolError when the box was altered, or made for another sender, receiver or round."""
    try:
        return ChaCha20Poly1305(key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], context)
    except InvalidTag:
        raise ProtocolError("a sealed share does not open: altered, or not from the client it names") from None
