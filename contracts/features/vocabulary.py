"""Vocabularies: sorted distinct keys of one type. The id of a key is its place plus 2; a key that is not there gets 1.

Keys are text, in byte order of UTF-8, or int64, to which false is 0 and true 1. Files are plain .npy, memory-mapped:

    FOLDER/vocabularies/NAME.npy                                    of int64: the keys
    FOLDER/vocabularies/NAME/{offsets,blob,hashes,ranks}.npy        of text: contracts/features/text_keys.py

contracts/features/vocabulary_writer.py writes what is too large to be in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from platform import node
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.config.section import KeyType
from contracts.errors import DataError
from contracts.features.arrow_columns import distinct_keys
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from contracts.features.text_keys import ABSENT, TextKeys
from contracts.features.vocabulary_writer import CHUNK, FOLDER, VocabularyWriter

TEXT_PARTS = ("offsets", "blob", "hashes", "ranks")


class Vocabulary:
    """`stored`: text keys, or int64 [N] ascending; `path`: of the files that they are mapped from.

    One that is mapped goes to another process as its path, and is mapped there.
    """

    def __init__(self, stored: TextKeys | np.ndarray, path: Path | None = None) -> None:
        self._stored, self.path = stored, path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Vocabulary, (self._stored,)) if self.path is None else (_arrived, (self.path.absolute(),))

    @classmethod
    def of(cls, keys: Iterable[Any] | np.ndarray | pa.Array | pa.ChunkedArray, key_type: KeyType) -> Vocabulary:
        """Of keys in any order, of which nulls are none. Raises DataError on one of another type."""
        if isinstance(keys, pa.ChunkedArray):
            keys = pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.nulls(0)
        if not isinstance(keys, pa.Array):
            keys = _arrow_keys(keys.tolist() if isinstance(keys, np.ndarray) else list(keys), key_type)
        distinct = distinct_keys(keys, key_type).keys
        if key_type != "string":
            return cls(np.unique(distinct.to_numpy(zero_copy_only=False)))
        texts = distinct.cast(pa.large_string())
        return cls(TextKeys.of(texts.take(pc.array_sort_indices(texts)).unique()))

    @property
    def holds_text(self) -> bool:
        return isinstance(self._stored, TextKeys)

    @property
    def text_keys(self) -> TextKeys | None:
        """The arrays of its texts; None where it holds integers."""
        return self._stored if isinstance(self._stored, TextKeys) else None

    def __len__(self) -> int:
        return len(self._stored)

    def __eq__(self, other: object) -> bool:
        """The same keys."""
        if not isinstance(other, Vocabulary) or self.holds_text != other.holds_text or len(self) != len(other):
            return False
        return all(self.keys(at, at + CHUNK).equals(other.keys(at, at + CHUNK)) for at in range(0, len(self), CHUNK))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {'texts' if self.holds_text else 'integers'})"

    def keys(self, start: int = 0, stop: int | None = None) -> pa.Array:
        """Keys from place `start` to before `stop`, large_string or int64, without a copy; their ids are from 2 on."""
        if isinstance(self._stored, TextKeys):
            return self._stored.texts(start, stop)
        return pa.array(self._stored[start:stop])

    def key(self, place: int) -> str | int:
        key: str | int = self.keys(place, place + 1)[0].as_py()
        return key

    def few_keys(self, places: Sequence[int]) -> list[str | int]:
        """Those at some places that there are, in their order: sooner than from `keys` where they are few."""
        if isinstance(self._stored, TextKeys):
            return [*self._stored.texts_at(places)]
        found: list[str | int] = self._stored[places].tolist()
        return found

    def place(self, text: str) -> int:
        """Where a text stands; -1 where it is not there. Raises DataError where keys are no texts."""
        if not isinstance(self._stored, TextKeys):
            raise self._of_another_type("string")
        return self._stored.place(text)

    def places(self, values: Sequence[object], key_type: KeyType) -> np.ndarray:
        """int64 [B]: where each value stands; -1 for None and for what is not there.

        Raises DataError on a float or another type: equality of floats is no identity.
        """
        if not self._holds(key_type):
            raise self._of_another_type(key_type)
        _check_types(values, key_type)
        if isinstance(self._stored, TextKeys):
            return self._stored.places(values)  # type: ignore[arg-type]
        present = np.array([value is not None for value in values], dtype=bool)
        whole = np.array([0 if value is None else value for value in values], dtype=np.int64)
        return np.where(present, _integer_places(self._stored, whole), ABSENT)

    def look_up(self, values: Sequence[object], key_type: KeyType) -> np.ndarray:
        """Ids int32 [B] of Python values, of which None is missing."""
        return _ids(self.places(values, key_type))

    def look_up_codes(self, codes: np.ndarray) -> np.ndarray:
        """Ids int32 of int64 keys, in their shape."""
        if isinstance(self._stored, TextKeys):
            raise self._of_another_type("int64")
        return _ids(_integer_places(self._stored, codes))

    def look_up_arrow(self, values: pa.Array, key_type: KeyType) -> np.ndarray:
        """Ids int32 [B] of an Arrow column, of which each distinct key is searched once; null is missing."""
        keys, at = distinct_keys(values, key_type)
        if not self._holds(key_type):
            raise self._of_another_type(key_type)
        return np.append(_ids(self._places_arrow(keys)), np.int32(UNKNOWN))[at]

    def places_of(self, other: Vocabulary) -> np.ndarray:
        """int64 [N]: where each key of `other` stands here, -1 for what is not there."""
        if self.holds_text != other.holds_text:
            return np.full(len(other), ABSENT)
        parts = [self._places_arrow(other.keys(at, at + CHUNK)) for at in range(0, len(other), CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _places_arrow(self, keys: pa.Array) -> np.ndarray:
        if isinstance(self._stored, TextKeys):
            return self._stored.places_arrow(keys.cast(pa.large_string()))
        return _integer_places(self._stored, keys.to_numpy(zero_copy_only=False))

    def _holds(self, key_type: KeyType) -> bool:
        return self.holds_text == (key_type == "string")

    def _of_another_type(self, wanted: str) -> DataError:
        held = "text" if self.holds_text else "int64"
        return DataError(f"{wanted} keys are looked up in a vocabulary that holds {held}")


def _ids(places: np.ndarray) -> np.ndarray:
    return np.where(places >= 0, places + FIRST_ID, UNKNOWN).astype(np.int32)


def _integer_places(ordered: np.ndarray, keys: np.ndarray) -> np.ndarray:
    if not len(ordered):
        return np.full(keys.shape, ABSENT)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.where(ordered[place] == keys, place, ABSENT)


def _check_types(values: Sequence[object], key_type: KeyType) -> None:
    allowed: tuple[type, ...] = {"string": (str,), "bool": (bool, np.bool_), "int64": (int, np.integer)}[key_type]
    wrong = {kind for kind in set(map(type, values)) - {type(None)}
             if not issubclass(kind, allowed) or (key_type == "int64" and kind is bool)}
    if wrong:
        value = next(value for value in values if type(value) in wrong)
        raise DataError(f"key {value!r} is a {type(value).__name__}, the vocabulary holds {key_type} keys")


def _arrow_keys(values: list[Any], key_type: KeyType) -> pa.Array:
    """Python keys as Arrow holds them; text may come as UTF-8 bytes."""
    values = [value.decode() if isinstance(value, bytes) else value for value in values]
    _check_types(values, key_type)
    return pa.array(values, {"string": pa.large_string(), "int64": pa.int64(), "bool": pa.bool_()}[key_type])


def write(folder: Path, name: str, vocabulary: Vocabulary) -> None:
    """Writes FOLDER/vocabularies/NAME, in place of what stood there."""
    with VocabularyWriter(folder, name, "string" if vocabulary.holds_text else "int64") as writer:
        for start in range(0, len(vocabulary), CHUNK):
            writer.add(vocabulary.keys(start, start + CHUNK))


def read_all(folder: Path) -> dict[str, Vocabulary]:
    """Every vocabulary below `folder`, memory-mapped, by name."""
    found = sorted(path for path in (folder / FOLDER).glob("*") if not path.name.startswith("."))
    return {path.name if path.is_dir() else path.stem: _read(path) for path in found}


def copy_all(source: Path, target: Path) -> None:
    """Every vocabulary below `source` to below `target`; nothing where no field has one."""
    if (source / FOLDER).exists():
        shutil.copytree(source / FOLDER, target / FOLDER)


def read(folder: Path, name: str) -> Vocabulary:
    """One vocabulary below `folder`, memory-mapped."""
    path = folder / FOLDER / name
    return _read(path if path.is_dir() else path.with_name(f"{name}.npy"))


def _read(path: Path) -> Vocabulary:
    """Raises DataError when a file is missing or damaged."""
    try:
        if path.is_dir():
            return Vocabulary(TextKeys(*(_mapped(path / f"{part}.npy") for part in TEXT_PARTS)), path)
        keys = _mapped(path)
    except (OSError, ValueError) as error:
        raise DataError(f"vocabulary {path} cannot be read ({error}); run `sluice features` again") from None
    if keys.dtype.kind == "S":  # of a bundle from before version 0.2, which stays servable
        return Vocabulary.of(keys, "string")
    return Vocabulary(keys, path)


def _arrived(path: Path) -> Vocabulary:
    """Raises DataError where the files are not on this machine."""
    if not path.exists():
        raise DataError(f"vocabulary {path} is not there on {node()}; OUT must be a folder that every executor has "
                        "under the same path (docs/how-to/clusters.md)")
    return _read(path)


def _mapped(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r", allow_pickle=False)
