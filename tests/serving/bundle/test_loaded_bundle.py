"""A loaded bundle is mapped, complete, in evaluation mode, and refused when anything in it is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.bundle.bundle import MANIFEST, load_array, load_weights, read_manifest, save_array, save_weights
from contracts.errors import BundleError, BundleVersionError, ChecksumError, ParityError
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary
from models.examples.batches import FeatureBlock
from serving.bundle.loaded_bundle import ITEM_PART, LoadedBundle
from serving.bundle.scoring_bundle import RANK

Republish = Callable[[Path], Path]


def test_version_and_shapes(loaded: LoadedBundle, bundle_folder: Path) -> None:
    assert loaded.version == read_manifest(bundle_folder).version
    assert loaded.item_vectors.shape == (80, loaded.settings.train.tower_dim)
    assert loaded.neighbours.shape == (80, 5)
    assert loaded.recent.shape == (60, 4)
    assert (len(loaded.users), len(loaded.items), len(loaded.index)) == (60, 80, 80)
    assert set(loaded.filters) == {"category", "brand"}


def test_tables_are_mapped_not_copied(loaded: LoadedBundle) -> None:
    mapped = [loaded.users.ids, loaded.items.ids, loaded.item_vectors, loaded.neighbours,
              loaded.recent, loaded.popularity]
    for array in mapped:
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable


def test_networks_only_answer(loaded: LoadedBundle) -> None:
    for network in (loaded.towers, loaded.pre_ranker, loaded.ranker):
        assert network is not None
        assert not network.training
        assert not any(parameter.requires_grad for parameter in network.parameters())


def test_parity_figures(bundle_folder: Path, loaded: LoadedBundle) -> None:
    assert loaded.parity is not None
    assert loaded.parity.figures.mismatches == 0
    assert LoadedBundle.load(bundle_folder, check_parity=False).parity is None


def test_corrupt_weights_are_caught_by_their_checksum(bundle_copy: Path) -> None:
    path = bundle_copy / "rank" / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ChecksumError, match=r"rank/weights\.safetensors"):
        LoadedBundle.load(bundle_copy)


def test_other_weights_with_right_checksums_are_caught_by_parity(bundle_copy: Path, republish: Republish) -> None:
    path = bundle_copy / "rank" / "weights.safetensors"
    save_weights(path, {name: array + np.float32(0.05) for name, array in load_weights(path).items()})
    folder = republish(bundle_copy)
    with pytest.raises(ParityError, match="logit"):
        LoadedBundle.load(folder)
    assert LoadedBundle.load(folder, check_parity=False).parity is None


def test_other_calibration_is_caught_by_parity(bundle_copy: Path, republish: Republish) -> None:
    path = bundle_copy / "rank" / "calibration.safetensors"
    arrays = load_weights(path)
    save_weights(path, {**arrays, "log_odds": arrays["log_odds"] + 0.1})
    with pytest.raises(ParityError, match="probability"):
        LoadedBundle.load(republish(bundle_copy))


def test_items_parts_of_other_weights_are_caught(bundle_copy: Path, republish: Republish) -> None:
    path = bundle_copy / RANK / ITEM_PART
    save_array(path, load_array(path) + np.float32(0.01))
    with pytest.raises(BundleError, match="not of this bundle's weights and items"):
        LoadedBundle.load(republish(bundle_copy))


def test_other_vocabulary_is_caught_by_parity(bundle_copy: Path, republish: Republish) -> None:
    keys = vocabulary.read(bundle_copy, "taste").keys().to_pylist()
    vocabulary.write(bundle_copy, "taste", Vocabulary.of([*keys[:-1], "zzz"], "string"))
    with pytest.raises(ParityError, match="slot 'taste'"):
        LoadedBundle.load(republish(bundle_copy))


@pytest.mark.parametrize("name", [
    "tables/items_ids.npy", "tables/vocabularies/users/blob.npy", "tables/items_bid.npy", "tables/popularity.npy",
    "tables/filter_brand_codes.npy", "tables/users_recent.npy", "retrieval/vectors.npy", "retrieval/neighbours.npy",
    "retrieval/index.faiss", "retrieval/towers.safetensors", "prerank/weights.safetensors",
    "prerank/calibration.safetensors",
    "rank/calibration.safetensors", "parity/rows.parquet", "settings.json",
])
def test_missing_file_is_refused_even_with_right_checksums(bundle_copy: Path, republish: Republish, name: str) -> None:
    (bundle_copy / name).unlink()
    with pytest.raises(BundleError, match=name.rsplit("/", 1)[-1].replace(".", r"\.")):
        LoadedBundle.load(republish(bundle_copy))


def test_unlisted_file_is_refused(bundle_copy: Path) -> None:
    (bundle_copy / "tables" / "more.npy").write_bytes(b"x")
    with pytest.raises(ChecksumError, match=r"more\.npy"):
        LoadedBundle.load(bundle_copy)


def test_newer_schema_is_refused(bundle_copy: Path) -> None:
    raw = json.loads((bundle_copy / MANIFEST).read_text())
    (bundle_copy / MANIFEST).write_text(json.dumps({**raw, "schema_version": raw["schema_version"] + 1}))
    with pytest.raises(BundleVersionError):
        LoadedBundle.load(bundle_copy)


def test_unknown_setting_is_refused(bundle_copy: Path, republish: Republish) -> None:
    path = bundle_copy / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "surprise": 1}))
    with pytest.raises(BundleError, match=r"settings\.json: surprise"):
        LoadedBundle.load(republish(bundle_copy))


def test_weights_of_other_settings_are_refused(bundle_copy: Path, republish: Republish) -> None:
    path = bundle_copy / "settings.json"
    settings = json.loads(path.read_text())
    settings["train"]["hidden"] = [17]
    path.write_text(json.dumps(settings))
    with pytest.raises(BundleError, match="other settings"):
        LoadedBundle.load(republish(bundle_copy))


def test_taste_is_learnt(loaded: LoadedBundle) -> None:
    """The fixture is no noise: a user's own category scores higher than the others."""
    with torch.inference_mode():
        row = loaded.users.row("u00")
        context = loaded.encoder.encode({}, "context")
        request = (np.concatenate([loaded.users.ids[[row]], context.ids], axis=1),
                  np.concatenate([loaded.users.dense[[row]], context.dense], axis=1))
        vector = loaded.towers.user_vector(FeatureBlock(*(torch.from_numpy(part) for part in request)))[0].numpy()
    own = loaded.filters["category"].passing(["books"])
    scores = loaded.item_vectors @ vector
    assert scores[own].mean() > scores[~own].mean()
