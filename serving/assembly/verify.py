"""Everything that can be checked about a bundle without traffic."""

from __future__ import annotations

from pathlib import Path

from contracts.summaries.bundle import VerifiedBundle
from serving.assembly.index_recall import index_recall
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import ScoringBundle


def verify(folder: Path) -> VerifiedBundle:
    """Checksums, parity, and the index's recall against exact search where there are items.

    Raises ChecksumError, BundleVersionError, BundleError or ParityError on the first thing wrong.
    """
    scoring = ScoringBundle.load(folder)
    assert scoring.parity is not None  # asked for by the line above
    verified = VerifiedBundle(
        version=scoring.version, files=len(scoring.manifest.files), parity=scoring.parity.figures)
    if not scoring.spec.has_items:
        return verified
    bundle = LoadedBundle.load(folder)
    recall = index_recall(bundle.index, bundle.users, bundle.encoder, bundle.towers, bundle.settings)
    checked = {channel.name: channel.parity for channel in bundle.channels if channel.parity}
    return verified.model_copy(update={"users": len(bundle.users), "items": len(bundle.items), "index": recall,
                                       "channels": checked or None})
