from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from contracts.errors import DataError, ProtocolError
from federated.secure_aggregation.identity import Identity, require_signed


def test_a_signature_holds_for_its_signer_purpose_text_and_round_alone():
    one, other = Identity.draw(0), Identity.draw(1)
    published = [one.public(), other.public()]
    signature = one.sign(b"a", b"keys", b"round 3")
    require_signed(published, 0, b"a", b"keys", signature, b"round 3")
    for signer, what, text, context in (
        (1, b"a", b"keys", b"round 3"), (0, b"a", b"kezs", b"round 3"), (0, b"a", b"keys", b"round 4"),
        (0, b"b", b"keys", b"round 3"), (2, b"a", b"keys", b"round 3"), (-1, b"a", b"keys", b"round 3"),
    ):
        with pytest.raises(ProtocolError, match="refused"):
            require_signed(published, signer, what, text, signature, context)


def test_an_identity_is_read_as_it_was_written():
    one = Identity.draw(5)
    again = Identity.from_pem(5, one.pem())
    assert again.public() == one.public()


@pytest.mark.parametrize("text", [b"", b"nonsense", X25519PrivateKey.generate().private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())])
def test_what_is_no_identity_is_refused(text):
    with pytest.raises(DataError, match="client 5"):
        Identity.from_pem(5, text)
