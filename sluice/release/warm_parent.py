"""Which bundle training starts from: the champion of the registry, another alias, a folder, or none.

The version is kept in OUT/models/parent.json for as long as the same is asked of the same windows, so that a run that
is repeated after its own bundle became champion starts where it started before, and gives what it gave before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError

from contracts.artifacts import Artifacts
from contracts.atomic_write import write_json
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import BundleError, ConfigError, DataError
from contracts.release.warm_parent import WarmParent
from contracts.windows import read as read_windows
from models.tracking.bundle_registry import (
    HASH,
    SCHEME,
    BundleRegistry,
    RegisteredBundle,
    parse_reference,
    registry_uri,
)
from models.tracking.tracking import URI

FILE = "parent.json"
CACHE = "registry_cache"


@dataclass(frozen=True)
class WarmStartSource:
    """`start` is a folder or models:/NAME@ALIAS; None: what the configuration says, where a registry is known."""

    start: str | None = None
    cold: bool = False
    registry: str | None = None


def parent_of(config: Config, out: Artifacts, source: WarmStartSource) -> Path | None:
    """The bundle's folder. Raises BundleError when what was asked for by name is not there, ConfigError for a run that
    would start from its own bundle or is to be warm and cold at once."""
    if source.cold and source.start:
        raise ConfigError(f"--cold starts from nothing and --warm from {source.start}; give one of them")
    if source.cold:
        _keep(out, "", None)
        return None
    if source.start and not source.start.startswith(SCHEME):
        return _folder(Path(source.start), out)
    return _of_registry(config, out, source)


def _folder(folder: Path, out: Artifacts) -> Path:
    """The folder itself, or the bundle of the run whose output it is."""
    source = folder if (folder / bundle.MANIFEST).exists() else Artifacts(folder).bundle
    if source.resolve() == out.bundle.resolve():
        raise ConfigError(f"{source} is what this run makes; start from another bundle, or give --cold")
    return source


def _of_registry(config: Config, out: Artifacts, source: WarmStartSource) -> Path | None:
    alias = config.train.warm_start
    reference = source.start or (f"{SCHEME}{config.name}@{alias}" if alias else "")
    known = source.registry or os.environ.get(URI) or (out.out / "mlflow.db").exists()
    if not reference or not (known or source.start):
        return None
    store = BundleRegistry(registry_uri(source.registry, out.out))
    version = _version(out, reference, store)
    if version is None and source.start:
        raise BundleError(f"{reference} names no version in {store.address}; register one, or give --cold")
    return store.fetch(version, out.out / CACHE) if version else None


def _version(out: Artifacts, reference: str, store: BundleRegistry) -> RegisteredBundle | None:
    """The version that this reference first led to for these windows, which may be none; else what it names now."""
    name, alias = parse_reference(reference)
    kept = _kept(out)
    if kept is None or (kept.asked, kept.windows) != (reference, _windows(out)):
        version = store.by_alias(name, alias)
        _keep(out, reference, version)
        return version
    if kept.content_hash is None:
        return None
    version = store.by_hash(name, kept.content_hash)
    if version is None:
        raise BundleError(f"this run started from {kept.version}, which {store.address} no longer has; give --cold, or "
                          f"remove {_path(out)} to start from what {reference} names now")
    return version


def _path(out: Artifacts) -> Path:
    return out.out / "models" / FILE


def _kept(out: Artifacts) -> WarmParent | None:
    path = _path(out)
    try:
        return WarmParent.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None
    except ValidationError:
        raise DataError(f"{path} does not say where training started; remove it to start from the present "
                        "champion, or give --cold") from None


def _keep(out: Artifacts, reference: str, version: RegisteredBundle | None) -> None:
    kept = WarmParent(asked=reference, windows=_windows(out), version=version.version if version else None,
                      content_hash=version.tags[HASH] if version else None)
    write_json(_path(out), kept.model_dump(mode="json"))


def _windows(out: Artifacts) -> JsonValue:
    windows = read_windows(out.windows)
    return windows.plain() if windows else None
