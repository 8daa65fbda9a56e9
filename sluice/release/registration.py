"""`sluice register`, `promote` and `rollback`: a run's bundle into the registry, past the gate, and back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.bundle.bundle import read_manifest
from contracts.config.days import Gate
from contracts.errors import BundleError, GateRefused
from models.tracking.bundle_registry import (
    CHAMPION,
    ROLLED_BACK,
    BundleRegistry,
    Lineage,
    RegisteredBundle,
    registry_uri,
)

GATE = "gate"


def register(folder: Path, registry: str | None, alias: str, commit: str | None) -> dict[str, Any]:
    """Registers OUT/bundle. A second run of the same content changes nothing."""
    out = Artifacts(folder)
    store = BundleRegistry(registry_uri(registry, folder))
    found = store.register(out.bundle, lineage(out, commit or present_commit()), alias)
    result = {"name": found.name, "number": found.number, "alias": alias, "registry": store.uri, "tags": found.tags}
    summary.write(folder / "registration", result)
    return result


def lineage(out: Artifacts, commit: str) -> Lineage:
    """The data interval spans all windows of the run."""
    if not out.windows.exists():
        return Lineage(commit=commit)
    spans = [span for span in json.loads(out.windows.read_text(encoding="utf-8")).values() if isinstance(span, list)]
    if not spans:
        return Lineage(commit=commit)
    return Lineage(min(start for start, _ in spans), max(end for _, end in spans), commit)


def present_commit() -> str:
    """Of the code that runs, "-dirty" where it was changed; "unknown" outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def promote(folder: Path, registry: str | None, force: bool) -> dict[str, Any]:
    """Judges OUT/bundle, registered before, against the champion, and makes it champion.

    Raises GateRefused with the reasons, which OUT/gate/summary.json also holds; `force` promotes in spite of them.
    """
    out = Artifacts(folder)
    store = BundleRegistry(registry_uri(registry, folder))
    manifest = read_manifest(out.bundle)
    version = store.by_hash(manifest.name, manifest.content_hash)
    if version is None:
        raise BundleError(f"{manifest.version} is not registered in {store.uri}; run `sluice register {folder}` first")
    champion = store.by_alias(version.name, CHAMPION)
    if champion and champion.number == version.number:
        return {"promoted": False, "reasons": [], "champion": version.version, "number": version.number}
    found = _judged(out, store, version, champion)
    summary.write(folder / GATE, found | {"forced": force})
    if found["reasons"] and not force:
        store.tag(version, refused="; ".join(found["reasons"]))
        raise GateRefused(
            f"{version.version} stays challenger: " + "; ".join(found["reasons"])
            + ". Look at the data and the training of the day, or promote in spite of it with --force"
        )
    store.promote(version)
    return found | {"promoted": True, "number": version.number}


def _judged(
    out: Artifacts, store: BundleRegistry, version: RegisteredBundle, champion: RegisteredBundle | None
) -> dict[str, Any]:
    from sluice.release.gate import judge

    if version.tags.get(ROLLED_BACK):
        return {"challenger": version.version, "reasons": [
            f"it was rolled back on {version.tags[ROLLED_BACK]}, and nothing about it has changed since"]}
    settings = read_manifest(out.bundle).settings
    rival = store.fetch(champion, out.out / "registry_cache") if champion else None
    return judge(out, out.bundle, rival, Gate.model_validate(settings.get("gate", {})), settings.get("seed", 0))


def rollback(name: str, registry: str | None, only: str | None) -> dict[str, Any]:
    """`only` names the bundle version to leave: where another is champion by now, nothing happens."""
    store = BundleRegistry(registry_uri(registry))
    champion = store.by_alias(name, CHAMPION)
    if only and champion and champion.version != only:
        return {"rolled_back": False, "champion": champion.version, "number": champion.number}
    left, restored = store.rollback(name)
    return {"rolled_back": True, "left": left.version, "champion": restored.version, "number": restored.number}
