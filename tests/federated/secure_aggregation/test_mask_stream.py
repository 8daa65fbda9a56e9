"""Streams against AES in ECB mode over a counter, and keys of one purpose against those of another."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from federated.secure_aggregation.mask_stream import KEY_BYTES, derive, words

KEY = bytes(range(KEY_BYTES))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_a_stream_is_the_encrypted_counter(dtype):
    blocks = b"".join(number.to_bytes(16, "big") for number in range(8))
    encryptor = Cipher(algorithms.AES256(KEY), modes.ECB()).encryptor()
    expected = np.frombuffer(encryptor.update(blocks), dtype=np.dtype(dtype).newbyteorder("<"))
    assert (words(KEY, len(expected), dtype) == expected).all()
    assert words(KEY, 3, dtype).dtype == dtype


def test_a_shorter_stream_is_the_head_of_a_longer_one():
    assert (words(KEY, 5, np.uint32) == words(KEY, 50, np.uint32)[:5]).all()


def test_purposes_and_secrets_give_keys_of_their_own():
    keys = {derive(secret, info) for secret in (b"one", b"other") for info in (b"a", b"b")}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {KEY_BYTES}
    assert derive(b"one", b"a") in keys
