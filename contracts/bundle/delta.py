"""What lies between two bundles, shipped in place of the new one: the blocks of their files that differ.

    delta.json     the two versions, and how every file that differs is kept
    NUMBER.zst     of one such file:
                   blocks   of one length in both bundles: the places of the blocks of 64 bytes that differ (int64), and
                            what XOR makes of both (zstd)
                   whole    else: the file of the one, then of the other; a size of None where it has none

Rows of tables, item vectors, weights and calibrations are such blocks; nothing is read of their formats. XOR leads
either way: the same increment is applied and taken back. What comes of it is the other bundle bit for bit, or nothing:
its checksums and its content hash are verified before it stands.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.bundle.bundle import MANIFEST, Manifest, put_verified, verify
from contracts.errors import BundleError, ChecksumError

FILE, FORMAT = "delta.json", 1
BLOCK = 64  # bytes
COMPARED = 1 << 26  # bytes at once
CODEC = "zstd"


class ChangedFile(BaseModel):
    """`sizes` in bytes, before and after; `blocks` that differ; `digest` is the payload's SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    kind: Literal["blocks", "whole"]
    sizes: tuple[int | None, int | None]
    blocks: int
    payload: str
    digest: str


class Delta(BaseModel):
    """Between the bundles of these versions and content hashes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    before: str
    after: str
    before_hash: str
    after_hash: str
    files: tuple[ChangedFile, ...]


class Sides(NamedTuple):
    """A file as it is in either bundle; None where there is none."""

    before: np.ndarray | None
    after: np.ndarray | None


def make(before: Path, after: Path, folder: Path) -> Delta:
    """Writes the delta of two bundles into `folder`, which it replaces. Raises BundleError, ChecksumError where one of
    them is none, or they are one."""
    old, new = verify(before), verify(after)
    if old.content_hash == new.content_hash:
        raise BundleError(f"{before} and {after} are the same bundle {new.version}; there is nothing between them")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    differing = [path for path in sorted({*old.files, *new.files}) if old.files.get(path) != new.files.get(path)]
    files = tuple(_written(path, Sides(_bytes(before / path), _bytes(after / path)), folder / f"{number}.zst")
                  for number, path in enumerate([*differing, MANIFEST]))
    delta = Delta(before=old.version, after=new.version, before_hash=old.content_hash, after_hash=new.content_hash,
                  files=files)
    (folder / FILE).write_text(delta.model_dump_json(indent=1), encoding="utf-8")
    return delta


def read(folder: Path) -> Delta:
    """Raises BundleError where there is none, ChecksumError where a part of it is damaged."""
    try:
        delta = Delta.model_validate_json((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise BundleError(f"{folder} is no delta of bundles: {FILE} cannot be read ({str(error).splitlines()[0]}); "
                          "make it again") from None
    for file in delta.files:
        payload = folder / Path(file.payload).name
        if not payload.exists() or hashlib.sha256(payload.read_bytes()).hexdigest() != file.digest:
            raise ChecksumError(f"{payload} is missing or damaged; copy the delta again")
    return delta


def apply(base: Path, folder: Path, destination: Path, revert: bool = False) -> Manifest:
    """The bundle on the other side of the delta, made of `base` and put at `destination`, which may be `base`. `revert`
    leads from the new one back. Raises BundleError where the delta does not begin at `base`, or leads elsewhere."""
    manifest, delta = verify(base), read(folder)
    begin, end, version = ((delta.after_hash, delta.before_hash, delta.after) if revert
                           else (delta.before_hash, delta.after_hash, delta.before))
    if manifest.content_hash != begin:
        raise BundleError(f"{base} is {manifest.version}, and the delta {folder} is applied to {version}: the chain is "
                          "broken; apply the deltas between them first, or ship the whole bundle")
    staging = destination.with_name(f".{destination.name}.{uuid.uuid4().hex[:8]}")
    try:
        shutil.copytree(base, staging)
        for file in delta.files:
            _applied(file, _inside(staging, file.path), (folder / Path(file.payload).name).read_bytes(), revert)
        if verify(staging).content_hash != end:
            raise ChecksumError(f"the delta {folder} does not lead to what it says; make it again")
        return put_verified(staging, destination)
    except (OSError, shutil.Error, ValueError) as error:
        raise BundleError(f"the delta {folder} cannot be applied at {destination}: {error}; nothing was changed there"
                          ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _inside(folder: Path, path: str) -> Path:
    """Raises ValueError where the path leads out of the folder."""
    found = folder / path
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError(f"{path[:80]!r} leads out of the bundle")
    return found


def _bytes(path: Path) -> np.ndarray | None:
    if not path.exists():
        return None
    return np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, dtype=np.uint8)


def _written(path: str, sides: Sides, payload: Path) -> ChangedFile:
    before, after = sides
    sizes = None if before is None else len(before), None if after is None else len(after)
    if before is not None and after is not None and len(before) == len(after):
        places = np.concatenate([*_differing(before, after), np.empty(0, dtype=np.int64)])
        mixed = _blocks(before, places) ^ _blocks(after, places)
        kind, raw, blocks = "blocks", places.tobytes() + mixed.tobytes(), len(places)
    else:
        kind, raw, blocks = "whole", b"".join(side.tobytes() for side in sides if side is not None), 0
    packed: bytes = pa.compress(raw, codec=CODEC, asbytes=True)
    payload.write_bytes(packed)
    return ChangedFile(path=path, kind=kind, sizes=sizes, blocks=blocks, payload=payload.name,  # type: ignore[arg-type]
                       digest=hashlib.sha256(packed).hexdigest())


def _differing(before: np.ndarray, after: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of blocks."""
    for start in range(0, len(before), COMPARED):
        wrong = np.flatnonzero(before[start : start + COMPARED] != after[start : start + COMPARED])
        yield np.unique((start + wrong) // BLOCK)


def _blocks(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """uint8 [n, BLOCK]; zeros beyond the end."""
    found = np.zeros((len(places), BLOCK), dtype=np.uint8)
    whole = places < len(data) // BLOCK
    found[whole] = data[: len(data) // BLOCK * BLOCK].reshape(-1, BLOCK)[places[whole]]
    rest = data[len(data) // BLOCK * BLOCK :]
    found[~whole, : len(rest)] = rest
    return found


def _applied(file: ChangedFile, path: Path, packed: bytes, revert: bool) -> None:
    size = file.sizes[0 if revert else 1]
    if file.kind == "blocks":
        raw = _unpacked(packed, file.blocks * (8 + BLOCK))
        places = np.frombuffer(raw, dtype=np.int64, count=file.blocks)
        mixed = np.frombuffer(raw, dtype=np.uint8, offset=8 * file.blocks).reshape(-1, BLOCK)
        data = np.fromfile(path, dtype=np.uint8)
        padded = np.zeros(-(-len(data) // BLOCK) * BLOCK, dtype=np.uint8)
        padded[: len(data)] = data
        padded.reshape(-1, BLOCK)[places] ^= mixed
        padded[: len(data)].tofile(path)
        return
    raw = _unpacked(packed, sum(one or 0 for one in file.sizes))
    path.unlink(missing_ok=True)
    if size is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw[:size] if revert else raw[len(raw) - size :])


def _unpacked(packed: bytes, size: int) -> bytes:
    found: bytes = pa.decompress(packed, decompressed_size=size, codec=CODEC, asbytes=True) if size else b""
    return found
