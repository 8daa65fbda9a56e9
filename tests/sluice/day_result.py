"""What a day leaves behind, to be compared with what the same day leaves that was killed in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from contracts.artifacts import WINDOWS, Artifacts
from contracts.bundle.bundle import verify
from contracts.features import found_crosses
from contracts.summaries.features import FeaturesSummary
from contracts.summaries.quality import QualitySummary
from contracts.summaries.summary import required
from models.tracking.bundle_registry import CHAMPION, BundleRegistry


def day_result(out: Artifacts) -> dict[str, Any]:
    """Everything that a day leaves behind, without times."""
    uri = f"sqlite:///{out.out / 'mlflow.db'}"
    manifest = verify(out.bundle)
    champion = BundleRegistry(uri).by_alias(manifest.name, CHAMPION)
    features = required(out.features, FeaturesSummary, "sluice features")
    quality = required(next(out.quality.glob("day=*/summary.json")).parent, QualitySummary, "sluice quality")
    return {
        "examples": {window: features.examples[window].content_hash for window in WINDOWS},
        "crosses": found_crosses.read(out.crosses), "bundle": manifest.content_hash,
        "quality": quality.figures,
        "versions": versions(uri, manifest.name),
        "champion": (champion.number, champion.tags["content_hash"], champion.tags["replaced"]) if champion else None,
        "days": sorted(path.name for path in out.examples("train").glob("day=*")),
        "rows": ds.dataset(out.examples("train")).count_rows(),
    }


def versions(uri: str, name: str) -> int:
    """How often the bundle was registered."""
    from mlflow.tracking import MlflowClient

    return len(MlflowClient(tracking_uri=uri, registry_uri=uri).search_model_versions(f"name = '{name}'"))


def left_behind(folder: Path) -> list[str]:
    """Files and folders that were to be renamed and were not."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(".*")
                  if "staging" in path.name or path.name.startswith((".build", ".snapshot", ".day=")))
