"""Sorted distinct texts, found by bisection or by hash; four arrays that may be memory-mapped.

    offsets  int64 [N + 1]   text i is bytes offsets[i] to offsets[i + 1] of `blob`: a long one costs its own length
    blob     uint8           all texts one after another, UTF-8, in byte order, which is Spark's order of strings
    hashes   uint64 [N]      contracts/features/text_hash.py of every text, ascending
    ranks    int32 [N]       whose hash that is: its place among the texts

A few keys are bisected, the first steps in a list of evenly spaced texts; a batch is hashed, its hashes are searched at
once, and the texts found are compared.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.errors import DataError
from contracts.features.text_hash import buffers, text_hashes

SAMPLE = 8192  # texts that are held in memory
FEW, FEW_OF_SAMPLE = 24, 400  # texts that are found sooner one by one, among more and where all are in memory
ABSENT = -1


class TextKeys:
    """Raises DataError where the arrays do not fit together."""

    def __init__(self, offsets: np.ndarray, blob: np.ndarray, hashes: np.ndarray, ranks: np.ndarray) -> None:
        self.offsets, self.blob, self.hashes, self.ranks = map(np.asarray, (offsets, blob, hashes, ranks))
        if not len(offsets) - 1 == len(hashes) == len(ranks) or offsets[-1] != len(blob):
            raise DataError(f"{len(offsets)} offsets up to {offsets[-1:]}, {len(blob)} bytes, {len(hashes)} hashes and "
                            f"{len(ranks)} ranks do not fit together")

    @classmethod
    def of(cls, texts: pa.LargeStringArray) -> TextKeys:
        """Of sorted distinct texts without nulls."""
        offsets, data = buffers(texts)
        hashes = text_hashes(texts)
        order = np.argsort(hashes, kind="stable")
        return cls(offsets - offsets[0], data[offsets[0] : offsets[-1]], hashes[order], order.astype(np.int32))

    def __reduce__(self) -> tuple[type[TextKeys], tuple[np.ndarray, ...]]:
        return TextKeys, (self.offsets, self.blob, self.hashes, self.ranks)

    def __len__(self) -> int:
        return len(self.hashes)

    def texts(self, start: int = 0, stop: int | None = None) -> pa.LargeStringArray:
        """The texts themselves, or a range of them, without a copy."""
        return self._texts[start:stop]

    @cached_property
    def _texts(self) -> pa.LargeStringArray:
        if not len(self):
            return pa.array([], pa.large_string())
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(self.offsets), pa.py_buffer(self.blob))

    def texts_at(self, places: Iterable[int]) -> list[str]:
        """Of a few places, which are not looked at."""
        offsets, blob = self.offsets.data, self.blob.data
        return [str(blob[offsets[place] : offsets[place + 1]], "utf-8") for place in places]

    @cached_property
    def _bytes_at(self) -> Callable[[int], bytes]:
        offsets, blob = self.offsets.data, self.blob.data
        return lambda place: bytes(blob[offsets[place] : offsets[place + 1]])

    @cached_property
    def _sampled(self) -> tuple[int, list[bytes]]:
        """(step, every text that stands at a multiple of it)."""
        step = -(-len(self) // SAMPLE) or 1
        at = pa.array(np.arange(0, len(self), step))
        return step, self._texts.take(at).cast(pa.large_binary()).to_pylist()

    def place(self, text: str) -> int:
        """-1 where it is not there."""
        key, (step, sampled) = text.encode(), self._sampled
        before = bisect.bisect_right(sampled, key) - 1
        if before < 0 or sampled[before] == key:
            return before * step if before >= 0 else ABSENT
        if step == 1:
            return ABSENT
        last = min((before + 1) * step, len(self))
        place = bisect.bisect_left(range(len(self)), key, before * step + 1, last, key=self._bytes_at)
        return place if place < last and self._bytes_at(place) == key else ABSENT

    def places(self, texts: Sequence[str | None]) -> np.ndarray:
        """int64 [B]; -1 for None and for each text that is not there."""
        if len(texts) <= (FEW if len(self) > SAMPLE else FEW_OF_SAMPLE):
            return np.array([ABSENT if text is None else self.place(text) for text in texts], dtype=np.int64)
        wanted = pa.array(texts, pa.large_string())
        if not wanted.null_count:
            return self.places_arrow(wanted)
        places = np.full(len(texts), ABSENT)
        places[wanted.is_valid().to_numpy(zero_copy_only=False)] = self.places_arrow(wanted.drop_null())
        return places

    def places_arrow(self, texts: pa.LargeStringArray) -> np.ndarray:
        """int64 [B] of an array without nulls; -1 for each text that is not there."""
        if not len(self) or not len(texts):
            return np.full(len(texts), ABSENT)
        hashes = text_hashes(texts)
        return self._compared(texts, hashes, np.searchsorted(self.hashes, hashes))

    def _compared(self, texts: pa.LargeStringArray, hashes: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Places of the texts whose hashes stand at `at` or right after it, which is where two texts have one hash."""
        inside = np.minimum(at, len(self) - 1)
        found = self.ranks[inside].astype(np.int64)
        equal = pc.equal(self._texts.take(pa.array(found)), texts).to_numpy(zero_copy_only=False)
        places = np.where(equal, found, ABSENT)
        if not equal.all():
            again = np.flatnonzero(~equal & (self.hashes[inside] == hashes) & (at < len(self)))
            if len(again):
                places[again] = self._compared(texts.take(pa.array(again)), hashes[again], at[again] + 1)
        return places
