from __future__ import annotations

import pytest

from contracts.errors import ProtocolError
from federated.secure_aggregation import sealed_box


def pair(info=b"x"):
    a, b = (sealed_box.private_key(sealed_box.new_seed(), b"test") for _ in range(2))
    return sealed_box.agree(a, sealed_box.public_bytes(b), info), sealed_box.agree(b, sealed_box.public_bytes(a), info)


def test_both_ends_agree_and_purposes_differ():
    one, other = pair()
    assert one == other
    seed = sealed_box.new_seed()
    keys = {sealed_box.public_bytes(sealed_box.private_key(seed, purpose)) for purpose in (b"a", b"b")}
    assert len(keys) == 2


def test_a_box_opens_for_its_context_alone():
    key, _ = pair()
    box = sealed_box.seal(key, b"text", b"1 to 2")
    assert sealed_box.unseal(key, box, b"1 to 2") == b"text"
    with pytest.raises(ProtocolError, match="does not open"):
        sealed_box.unseal(key, box, b"2 to 1")


def test_an_altered_box_is_refused():
    key, _ = pair()
    box = bytearray(sealed_box.seal(key, b"text", b""))
    box[-1] ^= 1
    with pytest.raises(ProtocolError, match="altered"):
        sealed_box.unseal(key, bytes(box), b"")


def test_a_degenerate_public_key_is_refused():
    with pytest.raises(ProtocolError, match="forged"):
        sealed_box.agree(sealed_box.private_key(bytes(16), b"test"), bytes(32), b"")
