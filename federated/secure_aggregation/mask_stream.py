"""Pseudo-random words from a secret key: AES-256 in counter mode over zeros. A key makes one stream, used once."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
NONCE = bytes(16)


def derive(secret: bytes, info: bytes) -> bytes:
    """HKDF-SHA256: 32 bytes for one purpose, which `info` names."""
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(secret)


def words(key: bytes, count: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
    """`count` words of `dtype` (little-endian)."""
    cipher = Cipher(algorithms.AES256(key), modes.CTR(NONCE)).encryptor()
    size = np.dtype(dtype).itemsize
    return np.frombuffer(cipher.update(bytes(count * size)), dtype=np.dtype(dtype).newbyteorder("<")).astype(
        dtype, copy=False
    )


def pseudo_random(key: bytes, names: np.ndarray) -> np.ndarray:
    """One uniform uint64 for each uint64 name, the same for the same key and name: AES-256 of the name as a block."""
    blocks = np.zeros((len(names), 2), dtype="<u8")
    blocks[:, 0] = names
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    return np.frombuffer(cipher.update(blocks.tobytes()), dtype="<u8").reshape(-1, 2)[:, 0].astype(np.uint64)
