"""A delta that was applied to a bundle's folder, which a server follows: what it made, of what, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from contracts.bundle import delta
from contracts.bundle.bundle import read_manifest
from contracts.errors import BundleError, ReplacedError
from contracts.release.registration import RollbackResult


class AppliedDelta(NamedTuple):
    """`folder` holds what `delta` leads to."""

    folder: Path
    delta: Path


def versions(applied: AppliedDelta) -> tuple[str, str]:
    """The bundle in the folder, and the one that reverting leads to. Raises BundleError where it holds another."""
    made, found = delta.read(applied.delta), read_manifest(applied.folder)
    if found.content_hash != made.after_hash:
        raise BundleError(f"{applied.folder} is {found.version}, and the delta {applied.delta} leads to {made.after}: "
                          "name the delta that was applied last")
    return made.after, made.before


def revert(applied: AppliedDelta, judged: str) -> RollbackResult:
    """Puts the bundle before in place again, bit for bit, where the folder still holds the version that was judged.
    Raises BundleError where it cannot be."""
    try:
        manifest = delta.apply(applied.folder, applied.delta, applied.folder, revert=True, leaving=judged)
    except ReplacedError:
        return RollbackResult(rolled_back=False, champion=read_manifest(applied.folder).version)
    if manifest.version == judged:
        raise BundleError(f"the delta {applied.delta} begins at {judged} by now, and nothing was taken back: name the "
                          "delta that was applied last")
    return RollbackResult(rolled_back=True, champion=manifest.version, left=judged)
