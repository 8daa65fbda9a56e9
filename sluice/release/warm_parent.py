"""Which bundle training starts from: the champion of the registry, another alias, a folder, or none.

What was found is kept in OUT/models/parent.json for as long as the same is asked of the same windows, so that a run
that is repeated after its own bundle became champion starts where it started before, and gives what it gave before.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import BundleError, ConfigError
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
class Warmth:
    """`start` is a folder or models:/NAME@ALIAS; None: what the configuration says, where a registry is known."""

    start: str | None = None
    cold: bool = False
    registry: str | None = None


def parent_of(config: Config, out: Artifacts, asked: Warmth) -> Path | None:
    """The bundle's folder. Raises BundleError when what was asked for by name is not there, ConfigError for a run that
    would start from its own bundle or is to be warm and cold at once."""
    if asked.cold and asked.start:
        raise ConfigError(f"--cold starts from nothing and --warm from {asked.start}; give one of them")
    if asked.cold:
        _keep(out, "", None)
        return None
    if asked.start and not asked.start.startswith(SCHEME):
        return _folder(Path(asked.start), out)
    return _of_registry(config, out, asked)


def _folder(folder: Path, out: Artifacts) -> Path:
    """The folder itself, or the bundle of the run whose output it is."""
    found = folder if (folder / bundle.MANIFEST).exists() else Artifacts(folder).bundle
    if found.resolve() == out.bundle.resolve():
        raise ConfigError(f"{found} is what this run makes; start from another bundle, or give --cold")
    return found


def _of_registry(config: Config, out: Artifacts, asked: Warmth) -> Path | None:
    alias = config.train.warm_start
    reference = asked.start or (f"{SCHEME}{config.name}@{alias}" if alias else "")
    known = asked.registry or os.environ.get(URI) or (out.out / "mlflow.db").exists()
    if not reference or not (known or asked.start):
        return None
    store = BundleRegistry(registry_uri(asked.registry, out.out))
    version = _version(out, reference, store)
    if version is None and asked.start:
        raise BundleError(f"{reference} names no version in {store.uri}; register one, or give --cold")
    return store.fetch(version, out.out / CACHE) if version else None


def _version(out: Artifacts, reference: str, store: BundleRegistry) -> RegisteredBundle | None:
    """What was found when this was first asked, which may be nothing; else what the alias names now."""
    name, alias = parse_reference(reference)
    path = out.out / "models" / FILE
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if (kept.get("asked"), kept.get("windows")) != (reference, _windows(out)):
        version = store.by_alias(name, alias)
        _keep(out, reference, version)
        return version
    if kept["content_hash"] is None:
        return None
    version = store.by_hash(name, kept["content_hash"])
    if version is None:
        raise BundleError(f"this run started from {kept['version']}, which {store.uri} no longer has; give --cold, or "
                          f"remove {path} to start from what {reference} names now")
    return version


def _keep(out: Artifacts, reference: str, version: RegisteredBundle | None) -> None:
    path = out.out / "models" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = {"asked": reference, "windows": _windows(out), "version": version.version if version else None,
             "content_hash": version.tags[HASH] if version else None}
    aside = path.with_name(f".{FILE}.{os.getpid()}")
    aside.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def _windows(out: Artifacts) -> Any:
    return json.loads(out.windows.read_text(encoding="utf-8")) if out.windows.exists() else None
