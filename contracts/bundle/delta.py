"""What lies between two bundles, shipped in place of the new one: the blocks of their files that differ.

    delta.json     the two versions, and how every file that differs is kept
    NUMBER.zst     of one such file:
                   blocks   of one length in both bundles: the places of the blocks of 64 bytes that differ (int64), and
                            what XOR makes of both (zstd)
                   whole    else: the file of the one, then of the other; a size of None where it has none

Rows of tables, item vectors, weights and calibrations are such blocks; nothing is read of their formats. XOR leads
either way: the same increment is applied and taken back. What comes of it is the other bundle bit for bit, or nothing:
it is made aside, of the old one's own files, and its checksums and content hash are verified before it stands. Whoever
made the delta decides what is in the new bundle, and writes nowhere else: paths stay inside, sizes are checked before
anything is unpacked, and nothing is unpacked beyond them.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from contracts.atomic_write import put_in_place, remove
from contracts.bundle.bundle import MANIFEST, Manifest, digest, put_verified, read_manifest, remove_abandoned, verify
from contracts.bundle.seal import UNSEALED, is_intact, sealed
from contracts.errors import BundleError, ChecksumError, ReplacedError
from contracts.locks.file_lock import Held, let_go, take

FILE = "delta.json"
BLOCK = 64  # bytes
COMPARED = PIECE = 1 << 26  # bytes at once
CODEC = "zstd"
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ChangedFile(BaseModel):
    """`sizes` in bytes, before and after; `blocks` that differ; `digest` is the payload's SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=1000)]
    kind: Literal["blocks", "whole"]
    sizes: tuple[NonNegativeInt | None, NonNegativeInt | None]
    blocks: NonNegativeInt
    payload: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.zst$")]
    digest: Digest


class Delta(BaseModel):
    """Between the bundles of these versions and content hashes; `seal` as a manifest's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    before: str
    after: str
    before_hash: Digest
    after_hash: Digest
    files: tuple[ChangedFile, ...]
    seal: Digest = UNSEALED


class Sides(NamedTuple):
    """A file as it is in either bundle; None where there is none."""

    before: np.ndarray | None
    after: np.ndarray | None


def make(before: Path, after: Path, folder: Path) -> Delta:
    """Writes the delta of two bundles into `folder`, in place of what is there once it is whole. Raises BundleError,
    ChecksumError where one of them is none, or they are one; then what is there stays."""
    old, new = verify(before), verify(after)
    if old.content_hash == new.content_hash:
        raise BundleError(f"{before} and {after} are the same bundle {new.version}; there is nothing between them")
    differing = [path for path in sorted({*old.files, *new.files}) if old.files.get(path) != new.files.get(path)]
    with _staged(folder) as staging:
        staging.mkdir(parents=True)
        files = tuple(_written(path, Sides(_bytes(before / path), _bytes(after / path)), staging / f"{number}.zst")
                      for number, path in enumerate([*differing, MANIFEST]))
        made = Delta(before=old.version, after=new.version, before_hash=old.content_hash, after_hash=new.content_hash,
                     files=files)
        (staging / FILE).write_bytes(sealed(made.model_dump_json(indent=1).encode()))
        delta = read(staging)
        put_in_place(staging, folder)
    return delta


@contextlib.contextmanager
def _staged(place: Path) -> Iterator[Path]:
    """Where what is to stand at `place` is made; it is gone afterwards."""
    remove_abandoned(place)
    staging = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield staging
    finally:
        remove(staging)


def read(folder: Path) -> Delta:
    """Raises BundleError where there is none, ChecksumError where a part of it is damaged."""
    try:
        text = (folder / FILE).read_bytes()
        delta = Delta.model_validate_json(text)
    except OSError as error:
        raise BundleError(f"{folder} is no delta of bundles: {FILE} cannot be read ({error.strerror})") from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{folder} is no delta of bundles, or a damaged one: {FILE}: {where}: {first['msg']}; make "
                          "it again") from None
    if not is_intact(text, delta.seal):
        raise ChecksumError(f"{folder / FILE} is damaged: it differs from its seal; copy the delta again")
    for file in delta.files:
        payload = folder / file.payload
        if not payload.is_file() or digest(payload) != file.digest:
            raise ChecksumError(f"{payload} is missing or damaged; copy the delta again")
    return delta


def apply(base: Path, folder: Path, destination: Path, revert: bool = False, leaving: str | None = None) -> Manifest:
    """The bundle on the other side of the delta, made of `base` and put at `destination`, which may be `base`; then a
    `base` that is that bundle already is left as it is. `revert` leads from the new one back. Raises BundleError where
    the delta does not begin at `base`, leads elsewhere, or another process is at `destination`; ReplacedError where
    `base` is another version than the one that is to be left, or becomes another meanwhile."""
    with _alone_at(destination):
        return _apply(base, folder, destination, revert, leaving)


@contextlib.contextmanager
def _alone_at(destination: Path) -> Iterator[None]:
    """Of two that begin at one bundle the one that ends first would be lost."""
    place = destination if destination.name not in ("", "..") else destination.resolve()
    path = place.parent / f".{place.name}.writer"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take(path, str(os.getpid()))
    except Held as held:
        raise BundleError(f"process {held.told or 'that has just begun'} is applying a delta at {destination}; this "
                          "one has changed nothing: run it again once that has ended") from None
    except OSError as error:
        raise BundleError(f"no delta can be applied at {destination}: {error}") from None
    try:
        yield
    finally:
        let_go(path, lock)


def _apply(base: Path, folder: Path, destination: Path, revert: bool, leaving: str | None) -> Manifest:
    manifest, delta = verify(base), read(folder)
    _check_base(base, leaving or manifest.version, manifest)
    begin, end, version = ((delta.after_hash, delta.before_hash, delta.after) if revert
                           else (delta.before_hash, delta.after_hash, delta.before))
    if manifest.content_hash == end and destination.exists() and destination.samefile(base):
        return manifest
    if manifest.content_hash != begin:
        raise BundleError(f"{base} is {manifest.version}, and the delta {folder} is applied to {version}: the chain is "
                          "broken; apply the deltas between them first, or ship the whole bundle")
    if destination.exists() and not (destination / MANIFEST).exists():
        raise BundleError(f"{destination} is there and no bundle, and would be replaced: name another place")
    try:
        with _staged(destination) as staging:
            _copied(base, [*manifest.files, MANIFEST], staging)
            _check_room(delta, staging, revert)
            for file in delta.files:
                _applied(file, _inside(staging, file.path), folder / file.payload, revert)
            if verify(staging).content_hash != end:
                raise ChecksumError(f"the delta {folder} does not lead to what it says; make it again")
            _check_base(base, manifest.version, read_manifest(base))
            return put_verified(staging, destination)
    except (OSError, ValueError) as error:
        raise BundleError(f"the delta {folder} cannot be applied at {destination}: {error}; nothing was changed there"
                          ) from error


def _check_base(base: Path, version: str, found: Manifest) -> None:
    """Raises ReplacedError where another version was found there."""
    if found.version != version:
        raise ReplacedError(f"{base} is {found.version} by now, and not {version}; nothing was changed there")


def _copied(base: Path, files: list[str], staging: Path) -> None:
    """The bundle's own files and nothing else: no link, and nothing that a link in its folder leads to."""
    for path in files:
        (staging / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(base / path, staging / path)


def _check_room(delta: Delta, staging: Path, revert: bool) -> None:
    """Raises ValueError where the disk has no room for the files that are written whole."""
    wanted = sum(file.sizes[0 if revert else 1] or 0 for file in delta.files if file.kind == "whole")
    free = shutil.disk_usage(staging).free
    if wanted > free:
        raise ValueError(f"its files take {wanted:,} bytes, the disk has {free:,}")


def _inside(folder: Path, path: str) -> Path:
    """Raises ValueError where the path leads out of the folder."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError(f"{path[:80]!r} leads out of the bundle")
    return folder / path


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


def _applied(file: ChangedFile, path: Path, payload: Path, revert: bool) -> None:
    """Raises ValueError where the file is not as it was when the delta was made, or the payload not as declared."""
    begin = file.sizes[1 if revert else 0]
    found = path.stat().st_size if path.is_file() else None
    if found != begin:
        raise ValueError(f"{file.path[:80]!r} has {found} bytes here, and {begin} where the delta begins")
    with pa.input_stream(payload, compression=CODEC) as stream:
        if file.kind == "blocks":
            _mix(path, stream, file.blocks)
        else:
            _replace(path, stream, file.sizes, revert)
        if stream.read(1):
            raise ValueError(f"{payload.name} holds more than it says")


def _mix(path: Path, stream: pa.NativeFile, blocks: int) -> None:
    data = np.fromfile(path, dtype=np.uint8)
    padded = np.zeros((-(-len(data) // BLOCK), BLOCK), dtype=np.uint8)
    if blocks > len(padded):
        raise ValueError(f"{blocks:,} blocks differ, of {len(padded):,}")
    padded.reshape(-1)[: len(data)] = data
    places = np.frombuffer(b"".join(_pieces(stream, 8 * blocks)), dtype=np.int64)
    if blocks and not 0 <= places.min() <= places.max() < len(padded):
        raise ValueError(f"blocks beyond the {len(padded):,} of the file")
    padded[places] ^= np.frombuffer(b"".join(_pieces(stream, BLOCK * blocks)), dtype=np.uint8).reshape(-1, BLOCK)
    padded.reshape(-1)[: len(data)].tofile(path)


def _replace(path: Path, stream: pa.NativeFile, sizes: tuple[int | None, int | None], revert: bool) -> None:
    """The payload is the file before, then the file after: one of them is written, the other passed over."""
    path.unlink(missing_ok=True)
    for size, wanted in zip(sizes, (revert, not revert), strict=True):
        pieces = _pieces(stream, size or 0)
        if wanted and size is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as written:
                written.writelines(pieces)
        else:
            collections.deque(pieces, maxlen=0)


def _pieces(stream: pa.NativeFile, size: int) -> Iterator[bytes]:
    """The next `size` bytes. Raises ValueError where there are fewer."""
    while size:
        piece = stream.read(min(size, PIECE))
        if not piece:
            raise ValueError(f"a payload ends {size:,} bytes too early")
        size -= len(piece)
        yield piece
