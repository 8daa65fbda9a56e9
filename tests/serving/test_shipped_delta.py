"""A day's changes shipped as a delta and applied on a host: what is served then is the new bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

from contracts.artifacts import CALIBRATION, Artifacts
from contracts.bundle import bundle, delta
from contracts.bundle.bundle import load_weights, save_weights
from contracts.config.rules import Rule
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from tests.serving.conftest import Market


def test_a_host_that_applies_a_delta_serves_the_new_bundle_and_after_taking_it_back_the_old(
    market: Market, trained_copy: Artifacts, bundle_folder: Path, tmp_path: Path
) -> None:
    """The towers' calibration and a rule have changed; parity is checked as the bundle is loaded."""
    path = trained_copy.model("pre_ranker") / CALIBRATION
    save_weights(path, {name: array * 1.5 for name, array in load_weights(path).items()})
    config = market.config.model_copy(update={"rules": (Rule(name="launch", pin="i13"),)})
    metrics = assemble(config, trained_copy, tmp_path / "build")
    new = bundle.publish(tmp_path / "build", tmp_path / "new", config.name, metrics=metrics)
    made = delta.make(bundle_folder, tmp_path / "new", tmp_path / "delta")
    assert {file.path for file in made.files} == {"manifest.json", "settings.json", "prerank/calibration.safetensors"}
    served = Path(shutil.copytree(bundle_folder, tmp_path / "served"))
    assert delta.apply(served, tmp_path / "delta", served) == new
    found = LoadedBundle.load(served)
    assert found.version == new.version
    assert Funnel(found).rank(RankQuery("u01", 5), Deadline(None)).items[0].item == "i13"
    delta.apply(served, tmp_path / "delta", served, revert=True)
    assert LoadedBundle.load(served).version == bundle.verify(bundle_folder).version
