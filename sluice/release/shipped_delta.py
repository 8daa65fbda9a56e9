"""`sluice bundle --delta`: what leads from the bundle that hosts have to the new one, beside it."""

from __future__ import annotations

from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.bundle import delta
from contracts.bundle.bundle import read_manifest

FOLDER = "delta"


def ship_delta(before: Path, out: Artifacts) -> str:
    """Writes OUT/delta, and says what it is; what lies there stays where `before` is the new bundle already, as once
    the delta was applied. Raises BundleError, ChecksumError where `before` is no bundle."""
    folder, old, new = out.out / FOLDER, read_manifest(before), read_manifest(out.bundle)
    if old.content_hash == new.content_hash:
        return f"{before} is {new.version} already, and {folder} stays as it was"
    made = delta.make(before, out.bundle, folder)
    return f"{folder} leads from {made.before} to {made.after}"
