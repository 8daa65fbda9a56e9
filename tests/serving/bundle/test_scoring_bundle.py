"""A bundle of a table without items: verified, refused by the server."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.errors import BundleError, ChecksumError
from contracts.features.feature_spec import FeatureSpec
from serving.assembly.assemble import assemble
from serving.assembly.verify import verify
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import ScoringBundle


@pytest.fixture
def scoring(market: Any, trained_copy: Artifacts) -> Path:
    """The market's scoring part alone, published; pre-ranker, towers and online tables were never made."""
    spec = FeatureSpec.read(trained_copy.encoding)
    spec.model_copy(update={"has_items": False, "has_users": False}).write(trained_copy.encoding)
    for name in (trained_copy.model("two_tower"), trained_copy.model("pre_ranker"), trained_copy.out / "online"):
        shutil.rmtree(name)
    metrics = assemble(market.config, trained_copy, trained_copy.out / "build")
    bundle.publish(trained_copy.out / "build", trained_copy.bundle, market.config.name, metrics=metrics)
    return trained_copy.bundle


def test_it_holds_what_scores_and_no_more(scoring: Path) -> None:
    held = {path.name for path in scoring.iterdir()}
    assert held >= {"feature_spec.json", "settings.json", "vocabularies", "rank", "parity"}
    assert not held & {"tables", "retrieval", "prerank"}
    loaded = ScoringBundle.load(scoring)
    assert loaded.parity is not None
    assert loaded.parity.mismatches == 0
    assert loaded.version == bundle.read_manifest(scoring).version


def test_it_verifies_and_is_not_served(scoring: Path) -> None:
    found = verify(scoring)
    assert found.parity.rows == 64
    assert found.index is None
    with pytest.raises(BundleError, match=r"ranks no items.*cannot be served; set log\.item_id"):
        LoadedBundle.load(scoring)


def test_changed_and_missing_files_are_refused(scoring: Path, republish: Callable[[Path], Path]) -> None:
    with (scoring / "settings.json").open("a") as file:
        file.write(" ")
    with pytest.raises(ChecksumError, match=r"settings\.json"):
        ScoringBundle.load(scoring)
    assert ScoringBundle.load(scoring, compared=True).parity is not None
    (scoring / "rank" / "calibration.safetensors").unlink()
    with pytest.raises(BundleError, match="calibration"):
        ScoringBundle.load(republish(scoring))
