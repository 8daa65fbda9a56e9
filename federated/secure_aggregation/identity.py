"""Who a client is: a long-lived Ed25519 key, whose public half all others know before the first round.

A server relays what clients announce in a round. They sign it, or the server could put keys of its own in the place of
a neighbour's and open what was sealed for it; and they sign whose uploads a sum has
(federated/secure_aggregation/roster_consistency.py). The list of public keys must reach clients by a way that the
server does not control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from contracts.errors import DataError, ProtocolError

SIGNATURE_BYTES = 64
ANNOUNCEMENT = b"announcement"


@dataclass(frozen=True)
class Identity:
    """`number`: the client's place in the published list."""

    number: int
    key: Ed25519PrivateKey

    @classmethod
    def draw(cls, number: int) -> Identity:
        """A new key, from the operating system's randomness."""
        return cls(number, Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, number: int, text: bytes) -> Identity:
        """Raises DataError on anything but an Ed25519 key without a password."""
        try:
            key = serialization.load_pem_private_key(text, password=None)
        except (ValueError, TypeError) as error:
            raise DataError(f"the identity of client {number} is no private key in PEM: {error}") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise DataError(f"the identity of client {number} is a {type(key).__name__}; Ed25519 is needed")
        return cls(number, key)

    def pem(self) -> bytes:
        """The private key, PKCS #8, without a password."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    def public(self) -> bytes:
        """32 bytes, as the published list has them."""
        return self.key.public_key().public_bytes_raw()

    def sign(self, what: bytes, text: bytes, context: bytes) -> bytes:
        """`what` says what is signed, so that one signature never stands for another thing."""
        return self.key.sign(_signed(self.number, what, text, context))


def require_signed(
    published: Sequence[bytes], signer: int, what: bytes, text: bytes, signature: bytes, context: bytes
) -> None:
    """Raises ProtocolError unless the client of that number in the list signed this text for this round."""
    if not 0 <= signer < len(published):
        raise ProtocolError(f"client {signer} is said to sign, the list has {len(published)} clients; refused")
    if not _verified(published[signer], signature, _signed(signer, what, text, context)):
        raise ProtocolError(f"the {what.decode()} is not signed by client {signer}, whom it names; refused")


@lru_cache(maxsize=2**14)  # one process may play a round's clients, who all check the same signatures
def _verified(public: bytes, signature: bytes, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _signed(number: int, what: bytes, text: bytes, context: bytes) -> bytes:
    parts = (what, b"%d" % number, context)
    return b"sluice" + b"".join(b"%d:" % len(part) + part for part in parts) + text
