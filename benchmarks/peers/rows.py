"""Encoded examples as FuxiCTR reads them: the same rows in the same order, the same ids, the same scaled numbers.

    FOLDER/feature_map.json   train.npz   valid.npz   test.npz   digest

Ids keep their numbers: 0 is padding, 1 unknown. A list of ids is a sequence under mean pooling; a history shares the
vectors of its target, as it does in the platform.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contracts.errors import ConfigError
from contracts.features.feature_spec import PADDING, BlockName, FeatureSpec
from models.examples.batches import ExampleSet

BLOCKS: tuple[BlockName, ...] = ("request", "candidate")
FILES = {"train": "train.npz", "validation": "valid.npz", "test": "test.npz"}
LABEL_COLUMN, DATASET = "label", "rows"
READ, DIGEST = 65_536, "digest"


def write_rows(spec: FeatureSpec, windows: Mapping[str, ExampleSet], folder: Path) -> None:
    """Raises ConfigError of examples that hold what FuxiCTR has no word for, pair rates and crosses as products, and
    where the folder has other rows."""
    if spec.pair_model or spec.products():
        raise ConfigError("FuxiCTR has no pair rates and no crosses as products; make the examples without "
                          "`[pair_rates]` and `[crosses]`")
    found = {window: columns(spec, examples) for window, examples in windows.items()}
    _same_rows(folder / DIGEST, digest(found))
    for window, of_window in found.items():
        np.savez(folder / FILES[window], allow_pickle=False, **of_window)
    (folder / "feature_map.json").write_text(json.dumps(feature_map(spec)), encoding="utf-8")


def digest(windows: Mapping[str, Mapping[str, np.ndarray]]) -> str:
    """SHA-256 over names and values of all columns."""
    found = hashlib.sha256()
    for window, of_window in windows.items():
        for name, values in of_window.items():
            found.update(f"{window} {name} {values.dtype} {values.shape}".encode())
            found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()


def _same_rows(path: Path, written: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") != written:
        raise ConfigError(f"{path.parents[1]} has runs on other rows; name another --out, or take it away")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written, encoding="utf-8")


def columns(spec: FeatureSpec, examples: ExampleSet) -> dict[str, np.ndarray]:
    """Feature -> [N] or [N, length], and the label."""
    parts: dict[str, list[np.ndarray]] = {}
    for batch in examples.batches(READ):
        for block, values in zip(BLOCKS, (batch.request, batch.candidate), strict=True):
            for slot in spec.block_ids(block):
                ids = values.ids[:, slot.start : slot.start + slot.width].numpy()
                parts.setdefault(named(slot.name), []).append(ids[:, 0] if slot.width == 1 else ids)
            for number in spec.block_dense(block):
                parts.setdefault(named(number.name) + "_number", []).append(values.dense[:, number.start].numpy())
        parts.setdefault(LABEL_COLUMN, []).append(batch.label.numpy())
    return {name: np.concatenate(part) for name, part in parts.items()}


def feature_map(spec: FeatureSpec) -> dict[str, Any]:
    """FuxiCTR's own description of the columns."""
    features: list[dict[str, dict[str, Any]]] = []
    first_of: dict[str, str] = {}
    for block in BLOCKS:
        for slot in spec.block_ids(block):
            kind = "categorical" if slot.width == 1 else "sequence"
            entry = {"source": "", "type": kind, "padding_idx": PADDING, "vocab_size": slot.size}
            if slot.width > 1:
                entry |= {"max_len": slot.width, "feature_encoder": "layers.MaskedAveragePooling()"}
            if slot.table in first_of:
                entry["share_embedding"] = first_of[slot.table]
            first_of.setdefault(slot.table, named(slot.name))
            features.append({named(slot.name): entry})
        features += [{named(number.name) + "_number": {"source": "", "type": "numeric"}}
                     for number in spec.block_dense(block)]
    sizes = [entry.get("vocab_size", 1) for feature in features for entry in feature.values()]
    return {"dataset_id": DATASET, "num_fields": len(features), "total_features": sum(sizes),
            "input_length": len(features), "labels": [LABEL_COLUMN], "features": features}


def named(slot: str) -> str:
    """A module of torch may have no dot in its name."""
    return slot.replace(".", "_")
