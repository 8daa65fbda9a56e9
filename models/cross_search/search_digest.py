"""When a search of crosses need not be done again: its digest is that of all that it and its comparison read."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from models.examples.in_memory import columns_read, rows_of
from models.examples.window_part import rows_by_day

APART = {  # settings of training that neither the search nor the networks it is compared by know
    "models", "ranker", "warm_start", "ensemble", "calibration", "lightgbm_rows", "checkpoint_minutes", "tower_dim",
    "tower_hidden", "tower_epochs", "tower_mixed", "tower_hard", "temperature"}


def search_digest(config: Config, out: Artifacts, spec: FeatureSpec, seed: int) -> str:
    """Changes with the settings, the seed, the fields, every value, label, user, position and day of a row of the
    training window, and the rows that a comparison is made on; not with the files that rows lie in, nor with what the
    spec has once the search is done: its crosses, and pair rates."""
    train = ExampleSet(out.examples("train"), spec)
    settings = [config.crosses.model_dump(mode="json"), config.train.model_dump(mode="json", exclude=APART),
                config.seed, seed, _fields(spec), rows_by_day(train.groups)]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in columns_read(train, spec):
        for (values,) in train.parts(name):
            digest.update(np.ascontiguousarray(values).tobytes())
    if config.crosses.compare_rows:
        for window in ("validation", "test"):
            rows = rows_of(ExampleSet(out.examples(window), spec), spec, config.crosses.compare_rows, seed)
            for array in rows.columns.values():
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _fields(spec: FeatureSpec) -> list[object]:
    """What a row's values mean to a network: sizes and bins of ids, scales of numbers, and the roles that rows have."""
    fields = [field.model_dump(mode="json", exclude={"cost"}) for field in spec.fields if field.kind != "statistic"]
    return [fields, spec.has_users, spec.has_position, spec.positions]
