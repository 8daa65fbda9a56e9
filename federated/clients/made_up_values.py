"""Values that nobody had: of a field's public vocabulary or bins, drawn alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contracts.features.feature_spec import FeatureField
from contracts.features.vocabulary import Vocabulary


def made_up(
    field: FeatureField, vocabularies: Mapping[str, Vocabulary], generator: np.random.Generator, count: int
) -> list[Any]:
    """`count` values as a request would hold them; none where the vocabulary is empty."""
    if field.dense:
        edges = next((edges for edges in field.edges.values() if edges), (field.mean,))
        return generator.choice(np.asarray(edges, dtype=np.float64), count).tolist()
    keys = vocabularies[field.vocabulary or ""]
    if not len(keys):
        return [None if field.kind == "categorical" else []] * count
    if field.kind == "categorical":
        return [_plain(keys, at, field) for at in generator.integers(0, len(keys), count)]
    return [[_plain(keys, at, field) for at in generator.integers(0, len(keys), field.length)] for _ in range(count)]


def _plain(keys: Vocabulary, place: int, field: FeatureField) -> str | int | bool:
    key = keys.key(place)
    return bool(key) if field.key_type == "bool" else key
