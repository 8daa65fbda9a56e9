from __future__ import annotations

import shutil
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from contracts.errors import DataError, ProtocolError
from federated.clients import client_files
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


def test_identities_are_drawn_once_and_the_public_halves_published(tmp_path):
    for number in range(3):
        client_files.client(tmp_path, number).mkdir(parents=True)
        (client_files.client(tmp_path, number) / client_files.SAMPLES).touch()
    client_files.public(tmp_path).mkdir()
    client_files.write_identities(tmp_path)
    published = client_files.identities(tmp_path)
    assert len(set(published)) == 3
    assert [client_files.read_identity(tmp_path, number).public() for number in range(3)] == list(published)
    file = client_files.client(tmp_path, 1) / client_files.IDENTITY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    client_files.write_identities(tmp_path)
    assert client_files.identities(tmp_path) == published
    assert file.read_bytes() not in b"".join(path.read_bytes() for path in client_files.public(tmp_path).iterdir())
    shutil.rmtree(client_files.public(tmp_path))
    with pytest.raises(DataError, match="know each other"):
        client_files.identities(tmp_path)
