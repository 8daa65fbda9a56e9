"""A bundle: one folder, one version, published and loaded as a whole.

    manifest.json                     this file's `Manifest`
    feature_spec.json, vocabularies/  the input contract
    tables/                           user and item tables, row-major, sorted by key
    retrieval/ prerank/ rank/         weights (safetensors), vectors, index, calibration
    reference.json                    what drift in serving is held against
    parity/                           sampled raw rows with the ids and scores computed offline

Nothing is pickled. Publishing writes aside, checks what was written, flushes it to disk and renames, so that a folder
of that name is either complete or not there.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator
from safetensors.numpy import load_file, save_file

from contracts.atomic_write import put_in_place, remove
from contracts.bundle.file_pieces import pieces
from contracts.bundle.seal import UNSEALED, is_intact, sealed
from contracts.config.config import Config
from contracts.errors import BundleError, BundleVersionError, ChecksumError
from contracts.summaries.bundle import BundleMetrics

SCHEMA_VERSION = 3  # 3: keys are stored at their own lengths
READABLE = (2, SCHEMA_VERSION)  # 2: weights of a first layer are named `request` and `candidate`; keys have one width
MANIFEST = "manifest.json"
ABANDONED_SECONDS = 3600.0


class Manifest(BaseModel):
    """`files` maps a relative path to its SHA-256; `content_hash` covers them all and names the version.

    `parents` are versions that training started from; `settings` the whole configuration of the run, `metrics` what was
    measured: None in a bundle that was made for a measurement alone. `seal` is the SHA-256 of the manifest's own bytes,
    with zeros in the seal's place; bundles of earlier releases have none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int
    name: str = Field(pattern="^[A-Za-z0-9_-]{1,200}$")
    content_hash: str
    created: datetime
    parents: tuple[str, ...] = ()
    settings: Config | None = None
    metrics: BundleMetrics | None = None
    files: dict[str, str]
    seal: str | None = None

    @field_validator("settings", "metrics", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return value or None

    @field_serializer("metrics")
    def _without_none(self, metrics: BundleMetrics | None) -> dict[str, Any] | None:
        return None if metrics is None else metrics.model_dump(mode="json", exclude_none=True)

    @property
    def version(self) -> str:
        """What the bundle is called: the same content has the same version on any machine."""
        return f"{self.name}-{self.content_hash[:12]}"

    @property
    def ranker(self) -> str | None:
        """The name of the served model."""
        return self.metrics.ranker if self.metrics else None


def digest(path: Path) -> str:
    """SHA-256 of the file, in hexadecimal."""
    found = hashlib.sha256()
    for piece in pieces(path):
        found.update(piece)
    return found.hexdigest()


def _files(folder: Path) -> dict[str, str]:
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): digest(path) for path in paths}


def _content_hash(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _flush(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def publish(
    build: Path,
    destination: Path,
    name: str,
    *,
    parents: tuple[str, ...] = (),
    settings: Config | None = None,
    metrics: BundleMetrics | None = None,
) -> Manifest:
    """Copies `build` beside `destination`, adds the manifest, verifies, and renames; an older bundle gives way whole.

    Raises BundleError when the disk is full or the write fails; the destination is then as it was before.
    """
    remove_abandoned(destination)
    staging = destination.with_name(f".{destination.name}.{uuid.uuid4().hex[:8]}")
    try:
        shutil.copytree(build, staging)
        files = _files(staging)
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            name=name,
            content_hash=_content_hash(files),
            created=datetime.now(UTC),
            parents=parents,
            settings=settings,
            metrics=metrics,
            files=files,
            seal=UNSEALED,
        )
        (staging / MANIFEST).write_bytes(sealed(manifest.model_dump_json(indent=1).encode()))
        manifest = put_verified(staging, destination)
    except (OSError, shutil.Error) as error:
        raise BundleError(f"cannot publish the bundle to {destination}: {error}; nothing was changed there") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return manifest


def put_verified(staging: Path, destination: Path) -> Manifest:
    """A whole bundle, checked, on disk and in its place at once. Raises ChecksumError where it is none, OSError."""
    manifest = verify(staging)
    _flush(staging)
    put_in_place(staging, destination)
    return manifest


def remove_abandoned(destination: Path) -> None:
    """What one that was killed has left behind, an hour ago or longer."""
    for path in destination.parent.glob(f".{glob.escape(destination.name)}.????????"):
        with contextlib.suppress(FileNotFoundError):  # another one removes it as well
            if time.time() - path.lstat().st_mtime > ABANDONED_SECONDS:
                remove(path)


def read_manifest(folder: Path) -> Manifest:
    """Raises BundleError when there is none or it cannot be read, BundleVersionError when it is of another schema."""
    try:
        text = (folder / MANIFEST).read_bytes()
        raw = json.loads(text.decode("utf-8"))
    except OSError as error:
        within = folder / "bundle"
        cure = f"; the bundle of this run is {within}" if os.path.exists(within / MANIFEST) else ""
        raise BundleError(f"{folder} is no bundle: {MANIFEST} cannot be read ({error.strerror}){cure}") from None
    except ValueError as error:
        raise BundleError(f"{folder / MANIFEST} is damaged: {error}; publish the bundle again") from None
    found = raw.get("schema_version") if isinstance(raw, dict) else None
    if isinstance(found, int) and found not in READABLE:
        cure = "upgrade Sluice" if found > SCHEMA_VERSION else "train and publish it again with this version"
        raise BundleVersionError(f"{folder} has bundle schema {found}, this Sluice reads {SCHEMA_VERSION}; {cure}")
    if isinstance(raw, dict) and "seal" in raw and not is_intact(text, raw["seal"]):
        raise ChecksumError(f"{folder / MANIFEST} is damaged: it differs from its seal; publish or copy the bundle "
                            "again")
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(
            f"{folder / MANIFEST} is damaged, or of another version of Sluice: {where}: {first['msg']}; publish the "
            "bundle again"
        ) from None


def verify(folder: Path) -> Manifest:
    """Every file present, none added, none changed, and the version theirs. Raises ChecksumError naming the first that
    differs."""
    manifest = read_manifest(folder)
    found = _files(folder)
    for path in sorted(manifest.files.keys() | found.keys()):
        if path not in found:
            raise ChecksumError(f"{folder}: {path} is missing; publish or copy the bundle again")
        if manifest.files.get(path) != found[path]:
            raise ChecksumError(f"{folder}: {path} differs from its checksum; publish or copy the bundle again")
    if manifest.content_hash != _content_hash(manifest.files):
        raise ChecksumError(f"{folder}: the manifest names another content than its files; publish or copy the bundle "
                            "again")
    return manifest


def save_weights(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Writes a safetensors file; a folder that is missing is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, path)


def load_weights(path: Path) -> dict[str, np.ndarray]:
    """Every array of a safetensors file, in memory."""
    return load_file(path)


def save_array(path: Path, array: np.ndarray) -> None:
    """Writes a plain .npy file; a folder that is missing is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.ascontiguousarray(array), allow_pickle=False)


def load_array(path: Path) -> np.ndarray:
    """Memory-mapped, so that the workers of one machine share its pages."""
    return np.load(path, mmap_mode="r", allow_pickle=False)
