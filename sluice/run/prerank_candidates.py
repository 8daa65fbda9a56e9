"""What a pre-ranker is trained and judged on: candidates as retrieval returns them to past requests.

They are retrieved by serving's own code from a bundle with the items as the start of the test window found them.
"""

from __future__ import annotations

import numpy as np

from contracts.artifacts import WINDOWS, Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import OnProgress
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import item_snapshot, past_requests, retrieved_candidates
from serving.replay.item_snapshot import SnapshotArtifacts
from serving.replay.past_requests import PastRequest
from sluice.run.emptied_folder import emptied


def write_candidates(
    config: Config, out: Artifacts, spec: FeatureSpec, seed: int, on_progress: OnProgress
) -> tuple[LoadedBundle, list[PastRequest]]:
    """Writes OUT/candidates; returns the bundle as of the test window's start, and the test window's requests."""
    on_progress("candidates", 0, len(WINDOWS))
    item_snapshot.write(out, spec)
    loaded, draw = snapshot_bundle(config, out), np.random.default_rng(seed)
    retrieved_candidates.items_of(loaded).save(out.candidates)
    settings, requests = config.prerank, []
    for number, window in enumerate(WINDOWS):
        on_progress("candidates", number, len(WINDOWS))
        training = window == "train"
        count = settings.requests if training else settings.evaluation_requests
        clicks, length = (0, settings.list_length) if training else (count, None)
        requests = past_requests.sample(
            out, spec, loaded.items, window, count, clicks, config.features.publish_every, draw, loaded.told)
        retrieved_candidates.retrieve(loaded, requests, draw, length).save(out.candidates / window)
    return loaded, requests


def snapshot_bundle(config: Config, out: Artifacts) -> LoadedBundle:
    """Everything but the pre-ranker, with the items of the snapshot written last; held in memory alone."""
    plain = config.model_copy(update={"prerank": config.prerank.model_copy(update={"kind": "dot_product"})})
    with emptied(out.out / ".snapshot") as folder:
        assemble(plain, SnapshotArtifacts(out.out), folder / "build")
        bundle.publish(folder / "build", folder / "bundle", config.name)
        return LoadedBundle.load(folder / "bundle", check_parity=False)
