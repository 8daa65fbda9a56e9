"""Profiles of encoded values, field by field, for drift between what was trained on and what is served.

A field with ids is a column of keys, its ids; a number with bins has those of its finest granularity, one without is
described by quantiles of its scaled input. Padding is no value. Crosses say nothing that their parts do not.
"""

from __future__ import annotations

import numpy as np

from contracts.config.section import Side
from contracts.features.drift import QUANTILES, ColumnProfile
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import PADDING, FeatureSpec, IdSlot

TOP_KEYS = 200


def encoded_profiles(spec: FeatureSpec, sides: tuple[Side, ...], values: Encoded) -> dict[str, ColumnProfile]:
    """`values` of B rows, laid out as `spec.id_slots(*sides)` and `dense_slots` say; further columns are ignored."""
    finest: dict[str, IdSlot] = {}
    for slot in spec.id_slots(*sides):
        if slot.field not in finest or slot.size > finest[slot.field].size:
            finest[slot.field] = slot
    found = {name: ids_profile(values.ids[:, slot.start : slot.start + slot.width]) for name, slot in finest.items()}
    return found | {slot.field: numbers_profile(values.dense[:, slot.start])
                    for slot in spec.dense_slots(*sides) if slot.field not in finest}


def ids_profile(ids: np.ndarray) -> ColumnProfile:
    """Of int [B, W]."""
    keys, counts = np.unique(ids[ids != PADDING], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    top = {str(keys[n]): int(counts[n]) for n in order[:TOP_KEYS]}
    empty = float((ids == PADDING).all(axis=1).mean()) if len(ids) else 0.0
    return ColumnProfile(null_rate=empty, keys=top, other=int(counts[order[TOP_KEYS:]].sum()))


def numbers_profile(values: np.ndarray) -> ColumnProfile:
    """Of numbers [B]; rounded to what a drift can depend on."""
    if not len(values):
        return ColumnProfile(null_rate=0.0)
    spread = np.quantile(values.astype(np.float64), np.linspace(0, 1, QUANTILES))
    return ColumnProfile(null_rate=0.0, quantiles=tuple(float(f"{value:.6g}") for value in spread))
