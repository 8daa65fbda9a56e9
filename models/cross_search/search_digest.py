"""When a search of crosses need not be done again: its digest is that of all that it and its comparison read."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from models.cross_search.columns import CrossColumns
from models.examples.batches import ExampleSet
from models.examples.in_memory import rows_of

APART = {  # settings of training that neither the search nor the networks it is compared by know
    "models", "ranker", "warm_start", "ensemble", "calibration", "lightgbm_rows", "checkpoint_minutes", "tower_dim",
    "tower_hidden", "tower_epochs", "tower_mixed", "tower_hard", "temperature"}


def search_digest(config: Config, out: Artifacts, spec: FeatureSpec, seed: int, columns: CrossColumns) -> str:
    """Changes with the settings, the seed, every id and label that the pruning sees, and the rows that a comparison is
    made on; not with the crosses that examples have once they are found, by which their files differ."""
    settings = [config.crosses.model_dump(mode="json"), config.train.model_dump(mode="json", exclude=APART),
                config.seed, seed, [slot._asdict() for slot in columns.slots]]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    arrays = [columns.ids, columns.label, columns.row]
    if config.crosses.compare_rows:
        for window in ("validation", "test"):
            rows = rows_of(ExampleSet(out.examples(window), spec), spec, config.crosses.compare_rows, seed)
            arrays.extend(rows.columns.values())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
