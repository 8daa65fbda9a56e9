from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.models.batches import spec
from benchmarks.peers.rows import FILES, feature_map, write_rows
from benchmarks.peers.sluice_ranker import examples
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureField


def test_ids_and_labels_are_those_of_the_examples(out: Path, tmp_path: Path) -> None:
    windows = examples(out)
    write_rows(windows["train"].spec, windows, tmp_path)
    for window, examples_of in windows.items():
        found = np.load(tmp_path / FILES[window])
        assert (found["c7"] == examples_of.column("c7")).all()
        assert (found["history"] == examples_of.column("history")).all()
        assert (found["label"] == examples_of.column("_label")).all()
        assert found["n3_number"].shape == (examples_of.rows,)
        assert set(found.files) == {name for feature in feature_map(spec())["features"] for name in feature} | {"label"}
    assert json.loads((tmp_path / "feature_map.json").read_text()) == feature_map(spec())


def test_a_history_shares_the_vectors_of_its_target() -> None:
    entries = {name: entry for feature in feature_map(spec())["features"] for name, entry in feature.items()}
    shared = {name: entry["share_embedding"] for name, entry in entries.items() if "share_embedding" in entry}
    assert shared in ({"history": "c1"}, {"c1": "history"})
    assert entries["history"]["max_len"] == 10
    assert entries["c7"] == {"source": "", "type": "categorical", "padding_idx": 0, "vocab_size": 8000}


def test_crosses_as_products_are_refused(tmp_path: Path) -> None:
    product = FeatureField(name="x", kind="cross", side="cross", key_type="int64", size=9, parts=("c0", "c1"),
                           representation="product")
    with pytest.raises(ConfigError, match="no crosses as products"):
        write_rows(spec().model_copy(update={"fields": (*spec().fields, product)}), {}, tmp_path)


def test_a_folder_keeps_to_the_rows_of_its_runs(out: Path, tmp_path: Path) -> None:
    windows = examples(out)
    for _ in range(2):
        write_rows(windows["train"].spec, windows, tmp_path / "adult" / "rows")
    with pytest.raises(ConfigError, match=r"adult has runs on other rows; name another --out"):
        write_rows(windows["train"].spec, {"train": windows["test"]}, tmp_path / "adult" / "rows")
