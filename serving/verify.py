"""Everything that can be checked about a bundle without traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serving.index_recall import index_recall
from serving.loaded_bundle import LoadedBundle


def verify(folder: Path) -> dict[str, Any]:
    """Checksums, parity, and the index's recall against exact search.

    Raises ChecksumError, BundleVersionError, BundleError or ParityError on the first thing wrong.
    """
    bundle = LoadedBundle.load(folder)
    assert bundle.parity is not None  # asked for by the line above
    return {
        "version": bundle.version,
        "files": len(bundle.manifest.files),
        "users": len(bundle.users),
        "items": len(bundle.items),
        "parity": bundle.parity.figures(),
        "index": index_recall(bundle.index, bundle.users, bundle.encoder, bundle.towers, bundle.settings),
    }
