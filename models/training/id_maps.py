"""Which id of an older feature spec means the same as an id of a newer one: by key, by range of numbers, by parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from contracts.features.encoding import bin_ids, radix_code
from contracts.features.feature_spec import FIRST_ID, PADDING, UNKNOWN, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary

NEW = -1
Vocabularies = Mapping[str, Vocabulary]
_KEYED = ("categorical", "multi_valued", "sequence")


def id_maps(
    old: FeatureSpec, old_keys: Vocabularies, new: FeatureSpec, new_keys: Vocabularies
) -> dict[str, np.ndarray]:
    """Slot name -> int64 [size of the new slot]: the old id of each new one, NEW where there was none.

    Padding and unknown stay what they are. A value keeps its id by its key; a bin is what held its middle; a cross of a
    vocabulary goes by the old ids of its parts; a hashed cross, whose buckets say nothing about values, is carried only
    when its parts kept every id. A field that the older spec lacks, or has as another kind, is new throughout.
    """
    maps: dict[str, np.ndarray] = {}
    for field in new.of_side("user", "context", "item"):
        before = old.by_name.get(field.name)
        for name, _, size in field.slots():
            maps[name] = _mapped(size, before, field, name, old_keys, new_keys)
    for field in new.crosses():
        before = old.by_name.get(field.name)
        known = before is not None and (before.kind, before.parts, before.buckets) == (
            "cross", field.parts, field.buckets) and not before.product
        found = _crossed(old, new, field, maps, old_keys, new_keys) if known else np.full(field.size - FIRST_ID, NEW)
        maps[field.name] = _whole(found, known)
    return maps


def _mapped(
    size: int, old: FeatureField | None, new: FeatureField, slot: str, old_keys: Vocabularies, new_keys: Vocabularies
) -> np.ndarray:
    if old is None or slot not in [name for name, _, _ in old.slots()]:
        return _whole(np.full(size - FIRST_ID, NEW), False)
    if new.dense:
        granularity = int(slot.rpartition("#")[2])
        return _whole(bin_map(old.edges[granularity], new.edges[granularity]), True)
    same = old.kind in _KEYED and old.key_type == new.key_type
    if not same or (old.vocabulary or "") not in old_keys or (new.vocabulary or "") not in new_keys:
        return _whole(np.full(size - FIRST_ID, NEW), False)
    place = old_keys[old.vocabulary or ""].places_of(new_keys[new.vocabulary or ""])
    return _whole(np.where(place >= 0, place + FIRST_ID, NEW), True)


def _whole(values: np.ndarray, known: bool) -> np.ndarray:
    """With padding and unknown in front."""
    head = [PADDING, UNKNOWN] if known else [NEW, NEW]
    return np.concatenate([np.array(head, dtype=np.int64), values.astype(np.int64)])


def bin_map(old: Sequence[float], new: Sequence[float]) -> np.ndarray:
    """The old id of each new bin [edges + 1]: the bin that held its middle; the outermost go by their one edge.

    A single bin, without edges, says nothing about numbers and is new unless it was so before.
    """
    if not new:
        return np.array([NEW if old else FIRST_ID])
    edges = np.asarray(new, dtype=np.float64)
    inside = [np.nextafter(edges[0], -np.inf), *(edges[:-1] + np.diff(edges) / 2), edges[-1]]
    return bin_ids(np.array(inside), old).astype(np.int64)


def _crossed(
    old: FeatureSpec, new: FeatureSpec, field: FeatureField, maps: Mapping[str, np.ndarray], old_keys: Vocabularies,
    new_keys: Vocabularies,
) -> np.ndarray:
    """int64 [ids from FIRST_ID on]"""
    sizes, old_sizes = ([spec.slot(part).size for part in field.parts] for spec in (new, old))
    if field.buckets:
        kept = sizes == old_sizes and all((maps[part] == np.arange(len(maps[part]))).all() for part in field.parts)
        return np.arange(FIRST_ID, field.size) if kept else np.full(field.size - FIRST_ID, NEW)
    codes = new_keys[field.vocabulary or ""].keys().to_numpy()
    parts, left = [], codes.copy()
    for part, size in zip(reversed(field.parts), reversed(sizes), strict=True):
        parts.append(maps[part][left % size])
        left //= size
    before = list(reversed(parts))
    ids = old_keys[old.by_name[field.name].vocabulary or ""].look_up_codes(radix_code(before, old_sizes))
    known = np.logical_and.reduce([part != NEW for part in before])
    return np.where((ids >= FIRST_ID) & known, ids, NEW)
