"""64-bit hashes of texts, the same on every machine: what the index of a text vocabulary is sorted by.

A text is cut into words w_0, w_1 ... of eight bytes, little-endian, the last one filled up with zeros. With the
finaliser f and constant g of splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"):

    hash = f(length * g + sum_j f(w_j + (j + 1) * g))        modulo 2^64

No secret is in it: who looks up by it must compare the texts as well.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

WORD = 8
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
FIRST_SHIFT, SECOND_SHIFT, LAST_SHIFT = np.uint64(30), np.uint64(27), np.uint64(31)
TAIL_MASKS = np.array([(1 << 8 * kept) - 1 for kept in range(WORD)], dtype=np.uint64)


def text_hashes(texts: pa.LargeStringArray) -> np.ndarray:
    """uint64 [N] of an array without nulls; a slice of an array will do."""
    if not len(texts):
        return np.empty(0, dtype=np.uint64)
    offsets, data = buffers(texts)
    starts, lengths = offsets[:-1] - offsets[0], offsets[1:] - offsets[:-1]
    padded = np.concatenate([data[offsets[0] : offsets[-1]], np.zeros(WORD, dtype=np.uint8)])
    words_of = lengths // WORD + 1
    ends = np.cumsum(words_of)
    place = np.arange(ends[-1]) - np.repeat(ends - words_of, words_of)
    at_each_byte = np.ndarray(len(padded) - WORD + 1, dtype="<u8", buffer=padded, strides=(1,))
    words = at_each_byte[np.repeat(starts, words_of) + WORD * place]
    words[ends - 1] &= TAIL_MASKS[lengths % WORD]
    mixed = _finalised(words + (place + 1).astype(np.uint64) * GOLDEN)
    return _finalised(np.add.reduceat(mixed, ends - words_of) + lengths.astype(np.uint64) * GOLDEN)


def buffers(texts: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
    """(offsets int64 [N + 1], bytes uint8 that they point into), both without a copy."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64, count=texts.offset + len(texts) + 1)[texts.offset :]
    return bounds, np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8)


def _finalised(words: np.ndarray) -> np.ndarray:
    words = (words ^ (words >> FIRST_SHIFT)) * FIRST_FACTOR
    words = (words ^ (words >> SECOND_SHIFT)) * SECOND_FACTOR
    return words ^ (words >> LAST_SHIFT)
