"""Writes a vocabulary whose keys come sorted, in parts, so that it is never in memory as a whole.

    with VocabularyWriter(folder, name, "string") as writer:
        for part in ordered_parts: writer.add(part)

Range partitions of a sort are such parts. The files stand in place when the block ends without an error.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike

from contracts.array_file import ArrayFile
from contracts.atomic_write import put_in_place
from contracts.config.section import KeyType
from contracts.errors import DataError
from contracts.features.arrow_columns import distinct_keys
from contracts.features.text_hash import buffers, text_hashes

FOLDER = "vocabularies"
CHUNK = 1 << 20  # keys that are handled at once
PART_BITS = 22  # about four million hashes are sorted at once
HASHED = "hashed"
FILES: dict[str, dict[str, DTypeLike]] = {
    "string": {"offsets": np.int64, "blob": np.uint8, HASHED: np.uint64}, "int64": {"keys": np.int64},
}


class VocabularyWriter:
    """Raises DataError on a key that is null, of another type, or not greater than the one before it."""

    def __init__(self, folder: Path, name: str, key_type: KeyType) -> None:
        self.key_type, self.keys, self.size = key_type, 0, 0
        self._name, self._target, self._last = name, folder / FOLDER / name, pa.nulls(0)
        self._draft = self._target.with_name(f".{name}.draft")
        shutil.rmtree(self._draft, ignore_errors=True)
        self._draft.mkdir(parents=True)
        self._open = ExitStack()
        stored = FILES["string" if key_type == "string" else "int64"]
        self._files = {part: self._open.enter_context(ArrayFile(self._draft / f"{part}.npy", dtype))
                       for part, dtype in stored.items()}
        if key_type == "string":
            self._files["offsets"].append(np.zeros(1, dtype=np.int64))

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
            for start in range(0, len(chunk), CHUNK):
                self._add(self._checked(chunk.slice(start, CHUNK)))

    def _checked(self, chunk: pa.Array) -> pa.Array:
        wanted = pa.large_string() if self.key_type == "string" else pa.int64()
        keys = distinct_keys(chunk, self.key_type).keys.cast(wanted)
        joined = pa.concat_arrays([self._last.cast(wanted), keys])
        if chunk.null_count or len(keys) < len(chunk):
            raise DataError(f"the keys of vocabulary {self._name!r} hold a null or one key twice; each must come once")
        if not pc.all(pc.less(joined[:-1], joined[1:]), min_count=0).as_py():
            at = pc.index(pc.less(joined[:-1], joined[1:]), False).as_py()
            raise DataError(f"the keys of vocabulary {self._name!r} do not come in ascending order: "
                            f"{joined[at + 1].as_py()!r} follows {joined[at].as_py()!r}")
        self._last = keys[-1:]
        return keys

    def _add(self, keys: pa.Array) -> None:
        self.keys += len(keys)
        if self.key_type != "string":
            self._files["keys"].append(keys.to_numpy(zero_copy_only=False))
            return
        offsets, data = buffers(keys)
        self._files["offsets"].append(offsets[1:] - offsets[0] + self.size)
        self._files["blob"].append(data[offsets[0] : offsets[-1]])
        self._files[HASHED].append(text_hashes(keys))
        self.size += int(offsets[-1] - offsets[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)
        if kind is None:
            self._finish()
        shutil.rmtree(self._draft, ignore_errors=True)

    def _finish(self) -> None:
        plain = self._target.with_name(f"{self._name}.npy")
        if self.key_type == "string":
            write_index(self._draft)
            put_in_place(self._draft, self._target)
            plain.unlink(missing_ok=True)
        else:
            (self._draft / "keys.npy").replace(plain)
            shutil.rmtree(self._target, ignore_errors=True)


def write_index(folder: Path) -> None:
    """FOLDER/hashed.npy (hash of each text in its place) -> hashes.npy, ascending, and ranks.npy, range by range."""
    hashed = np.load(folder / f"{HASHED}.npy", mmap_mode="r")
    bits = max(0, (max(1, len(hashed)) - 1).bit_length() - PART_BITS)
    with ArrayFile(folder / "hashes.npy", np.uint64) as hashes, ArrayFile(folder / "ranks.npy", np.int32) as ranks:
        for part in range(1 << bits):
            places = _places_in(hashed, part, bits)
            order = places[np.argsort(hashed[places], kind="stable")]
            hashes.append(hashed[order])
            ranks.append(order)
    (folder / f"{HASHED}.npy").unlink()


def _places_in(hashed: np.ndarray, part: int, bits: int) -> np.ndarray:
    """Places of the hashes whose highest `bits` bits are `part`."""
    if not bits:
        return np.arange(len(hashed))
    return np.concatenate([
        at + np.flatnonzero(hashed[at : at + CHUNK] >> np.uint64(64 - bits) == part)
        for at in range(0, len(hashed), CHUNK)
    ])
